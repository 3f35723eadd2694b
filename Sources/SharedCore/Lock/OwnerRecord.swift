internal import Foundation
public import Glibc

/// Which kind of core a process runs.
package enum CoreRole: String, Codable, Hashable, Sendable, CaseIterable {
    /// The application: it has priority.
    case main
    /// An extension woken by a push: it never starts beside another core, and gives way to those of the other roles.
    case executor
    /// A process without a screen, woken by a push of a call: it gives way to a main between calls.
    case call
}

/// Who owns the core and why, as written in the lock file for everybody to read.
///
/// It informs; it grants nothing. Ownership is the lock that the kernel holds.
///
/// Shape: one line of JSON, filled with spaces to `byteCount` bytes so that it is written by one call and never leaves the end of a
/// longer one behind: `{"check":1234567,"epoch":17,"pid":4711,"role":"executor","startTime":123456,"why":"push 1234@host"}`.
/// `check` is the FNV-1a hash of the other fields: half of one record with half of another is none. An executor that gives way adds
/// `"isStopping":true`.
public struct OwnerRecord: Codable, Hashable, Sendable {
    /// The owner's process number.
    public let pid: pid_t
    /// When that process started.
    ///
    /// Units: clock ticks since boot.
    package let startTime: UInt64
    /// The kind of core it runs.
    package let role: CoreRole
    /// The epoch it began; 0 before.
    package let epoch: Epoch
    /// Written only when it is so, as earlier versions know no more.
    private let stopping: Bool?
    /// What it was started for, in words; cut to 100 Unicode scalars.
    package let why: String
    private let check: UInt32

    private enum CodingKeys: String, CodingKey {
        case pid, startTime, role, epoch, why, check
        case stopping = "isStopping"
    }

    /// A record of what a process owns.
    package init(process: ProcessIdentity, role: CoreRole, epoch: Epoch, isStopping: Bool = false, why: String) {
        pid = process.pid
        startTime = process.startTime
        self.role = role
        self.epoch = epoch
        stopping = isStopping ? true : nil
        self.why = String(String.UnicodeScalarView(why.unicodeScalars.prefix(Self.mostReason)))
        check = Self.hash(process, role, epoch, isStopping, self.why)
    }

    /// Whether it was asked to give way, and ends its work.
    package var isStopping: Bool { stopping == true }

    /// The same, of an owner that gives way.
    package var givingWay: OwnerRecord {
        OwnerRecord(process: process, role: role, epoch: epoch, isStopping: true, why: why)
    }

    /// The owner's process.
    package var process: ProcessIdentity { ProcessIdentity(pid: pid, startTime: startTime) }

    /// The record in these bytes; nil when they are torn, or of another program.
    init?(parsing bytes: some BidirectionalCollection<UInt8>) {
        guard bytes.count == Self.byteCount, bytes.last == UInt8(ascii: "\n"),
            let record = try? JSONDecoder().decode(Self.self, from: Data(bytes)), record.pid > 0,
            record.check == Self.hash(record.process, record.role, record.epoch, record.isStopping, record.why)
        else { return nil }
        self = record
    }

    func serialize() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var bytes = [UInt8](try encoder.encode(self))
        precondition(bytes.count < Self.byteCount, "the reason is bounded, so the record is")
        bytes += [UInt8](repeating: UInt8(ascii: " "), count: Self.byteCount - 1 - bytes.count)
        return bytes + [UInt8(ascii: "\n")]
    }

    private static func hash(
        _ process: ProcessIdentity,
        _ role: CoreRole,
        _ epoch: Epoch,
        _ isStopping: Bool,
        _ why: String
    ) -> UInt32 {
        let end = isStopping ? " stopping" : ""
        let fields = "\(process.pid) \(process.startTime) \(role.rawValue) \(epoch) \(why)\(end)"
        return fields.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
    }

    /// Room for the longest reason with every scalar escaped, and the other fields.
    static var byteCount: Int { 1024 }
    static var mostReason: Int { 100 }
}
