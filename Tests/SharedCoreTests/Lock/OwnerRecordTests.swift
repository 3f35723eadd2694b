import Testing

@testable import SharedCore

@Suite struct OwnerRecordTests {
    static let record = OwnerRecord(
        process: ProcessIdentity(pid: 4711, startTime: 123_456),
        role: .executor,
        epoch: Epoch(rawValue: 17),
        why: "push 1234@host"
    )

    @Test func `what is written is read`() throws {
        let bytes = try Self.record.serialize()
        #expect(bytes.count == OwnerRecord.byteCount)
        #expect(OwnerRecord(parsing: bytes) == Self.record)
        let stopping = OwnerRecord(parsing: try Self.record.givingWay.serialize())
        #expect(stopping?.isStopping == true && stopping?.process == Self.record.process)
        let line = String(decoding: bytes, as: UTF8.self)
        #expect(line.contains(#","epoch":17,"pid":4711,"role":"executor","startTime":123456,"why":"push 1234@host"}"#))
    }

    @Test func `no part of a record is a record`() throws {
        let bytes = try Self.record.serialize()
        for count in 0..<bytes.count { #expect(OwnerRecord(parsing: Array(bytes.prefix(count))) == nil) }
    }

    @Test func `a torn record is none`() throws {
        let other = OwnerRecord(
            process: ProcessIdentity(pid: 1, startTime: 1),
            role: .main,
            epoch: Epoch(rawValue: 1),
            why: ""
        )
        let textByteCount = 120
        let old = try Self.record.serialize()
        let new = try other.serialize()
        for cut in 1..<textByteCount {
            let torn = Array(new.prefix(cut) + old.dropFirst(cut))
            if torn != old, torn != new { #expect(OwnerRecord(parsing: torn) == nil) }
        }
    }

    @Test(arguments: ["\u{1}", "\u{0}", "\"", "é", "👩‍👩‍👧‍👦"])
    func `a reason of any length fits`(character: String) throws {
        let record = OwnerRecord(
            process: .current,
            role: .main,
            epoch: Epoch(rawValue: .max),
            why: String(repeating: character, count: 5000)
        )
        #expect(OwnerRecord(parsing: try record.serialize()) == record)
    }

    @Test func `random bytes are no record`() {
        var generator = SplitMix64(seed: 1)
        for _ in 0..<200 {
            var bytes = (0..<OwnerRecord.byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
            bytes[bytes.count - 1] = UInt8(ascii: "\n")
            #expect(OwnerRecord(parsing: bytes) == nil)
        }
    }
}
