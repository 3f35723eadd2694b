import Foundation
import Testing

@testable import MediaTransport

extension SRTPSender {
    /// What becomes of a packet of RTP.
    mutating func protected(_ packet: [UInt8]) throws -> [UInt8] {
        var buffer = packet + [UInt8](repeating: 0, count: 64)
        var span = buffer.mutableSpan
        let count = try protect(&span, count: packet.count).get()
        return Array(buffer[..<count])
    }

    /// What becomes of a packet of RTCP.
    mutating func protectedControl(_ packet: [UInt8]) throws -> [UInt8] {
        var buffer = packet + [UInt8](repeating: 0, count: 64)
        var span = buffer.mutableSpan
        let count = try protectControl(&span, count: packet.count).get()
        return Array(buffer[..<count])
    }
}

extension SRTPReceiver {
    /// What is left of a packet of SRTP.
    mutating func unprotected(_ packet: [UInt8]) throws -> [UInt8] {
        var buffer = packet
        var span = buffer.mutableSpan
        let count = try unprotect(&span, count: packet.count).get()
        return Array(buffer[..<count])
    }

    /// What is left of a packet of SRTCP.
    mutating func unprotectedControl(_ packet: [UInt8]) throws -> [UInt8] {
        var buffer = packet
        var span = buffer.mutableSpan
        let count = try unprotectControl(&span, count: packet.count).get()
        return Array(buffer[..<count])
    }
}

/// Packets, and the keys that two sides share.
enum Packets {
    static func keys(
        _ suite: SRTPSuite = .aes128CM80,
        seed: UInt8 = 1,
        identifier: [UInt8] = [],
        lifetime: UInt64? = nil,
        encryptsControl: Bool = true
    ) throws -> SRTPKeys {
        let bytes = (0..<suite.keyByteCount + suite.saltByteCount).map { UInt8(truncatingIfNeeded: $0 * 7) &+ seed }
        let master = try #require(SRTPMasterKey(suite, keyAndSalt: bytes))
        return SRTPKeys(master, identifier: identifier, lifetime: lifetime, encryptsControl: encryptsControl)
    }

    /// A packet of RTP with 20 bytes of sound.
    static func media(_ sequence: UInt16, ssrc: UInt32 = 0x0102_0304) -> [UInt8] {
        [0x80, 0, UInt8(sequence >> 8), UInt8(sequence & 0xFF), 0, 0, 0, 1] + word(ssrc)
            + (0..<20).map { UInt8(truncatingIfNeeded: $0) &+ UInt8(sequence & 0x7F) }
    }

    /// A receiver report without blocks, and a BYE.
    static func control(ssrc: UInt32 = 0x0102_0304) -> [UInt8] {
        [0x80, 201, 0, 1] + word(ssrc) + [0x81, 203, 0, 1] + word(ssrc)
    }

    private static func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(value >> (24 - 8 * $0) & 0xFF) } }
}

/// Files beside the tests.
enum Fixture {
    /// The vectors in `name`, whose keys are written with underscores; none when they cannot be read.
    static func vectors<Vector: Decodable>(_ name: String, as type: Vector.Type) -> [Vector] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Fixtures/\(name)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return (try? decoder.decode([Vector].self, from: Data(contentsOf: file))) ?? []
    }
}
