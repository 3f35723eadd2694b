import CAllocationCounter
import CMeasure

import EngineBenchmarks
@testable import MediaEngine
@testable import MediaTransport

/// What SRTP costs: a packet beside libcrypto alone, and a leg beside one in the clear.
enum SecuredSound {
    /// As many as the first cache holds, as it does the one of libcrypto's loop.
    private static let packets = 128
    private static let headerByteCount = 12

    static func measure(_ options: Options) async throws -> [Figure] {
        var figures: [Figure] = []
        for (suite, floor) in [
            (SRTPSuite.aes128CM80, measure_counter_mode), (.aes128GCM, measure_galois_mode),
        ] {
            for byteCount in [172, 80] { figures += try cost(suite, byteCount, options, beside: floor) }
        }
        figures += [try legs(options)] + (try Handshakes.measure(options))
        return figures + (try await SecuredLoad.measure(options))
    }

    static func keys(_ suite: SRTPSuite, _ seed: Int = 1) throws -> SRTPKeys {
        let bytes = (0..<suite.keyByteCount + suite.saltByteCount).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ seed) }
        guard let key = SRTPMasterKey(suite, keyAndSalt: bytes) else {
            throw Options.Wrong(description: "no key of \(suite)")
        }
        return SRTPKeys(key)
    }

    /// Nanoseconds of a packet protected and unprotected over those of libcrypto, the least of all rounds.
    private static func cost(
        _ suite: SRTPSuite,
        _ byteCount: Int,
        _ options: Options,
        beside floor: (Int32, Int32) -> Int64
    ) throws -> [Figure] {
        var (protect, unprotect, bare) = (Double.infinity, Double.infinity, Double.infinity)
        var allocations = 0
        for round in 0..<200 * options.repetitions {
            var sender = SRTPSender(try keys(suite, round))
            var receiver = SRTPReceiver(try keys(suite, round))
            var buffers = (0..<packets).map { number in
                var packet = [UInt8](repeating: 0x55, count: byteCount + 64)
                let header: [UInt8] = [0x80, 0, UInt8(number >> 8), UInt8(number & 0xFF), 0, 0, 0, 0, 0, 0, 0, 9]
                packet.replaceSubrange(..<headerByteCount, with: header)
                return packet
            }
            var counts = [Int](repeating: 0, count: packets)
            allocation_counter_begin()
            let start = measure_thread_cpu()
            for index in 0..<packets {
                var span = buffers[index].mutableSpan
                counts[index] = try sender.protect(&span, count: byteCount).get()
            }
            let middle = measure_thread_cpu()
            for index in 0..<packets {
                var span = buffers[index].mutableSpan
                counts[index] = try receiver.unprotect(&span, count: counts[index]).get()
            }
            let end = measure_thread_cpu()
            allocations += Int(allocation_counter_end().allocations)
            guard counts.allSatisfy({ $0 == byteCount }), buffers.allSatisfy({ $0[byteCount - 1] == 0x55 }) else {
                throw Options.Wrong(description: "\(suite) gives something else back")
            }
            protect = min(protect, Double(middle - start) / Double(packets))
            unprotect = min(unprotect, Double(end - middle) / Double(packets))
            let alone = floor(Int32(byteCount), Int32(packets))
            guard alone > 0 else { throw Options.Wrong(description: "libcrypto.so.3 is not to be had") }
            bare = min(bare, Double(alone) / Double(packets))
        }
        let what = "secured: \(suite.rawValue), \(byteCount) bytes"
        let beside = "\(Report.number(bare)) ns"
        return [
            Figure(
                "\(what), protected / libcrypto",
                protect / bare,
                "",
                .atMost(1.05),
                note: "\(Report.number(protect)) / \(beside)"
            ),
            Figure(
                "\(what), unprotected / libcrypto",
                unprotect / bare,
                "",
                .atMost(1.05),
                note: "\(Report.number(unprotect)) / \(beside)"
            ),
            Figure("\(what), allocations", Double(allocations), "", .atMost(0)),
        ]
    }

    /// CPU of a secured leg of PCMU less that of one in the clear, the least of both.
    private static func legs(_ options: Options) throws -> Figure {
        var (plain, secured) = (Double.infinity, Double.infinity)
        for _ in 0..<options.repetitions {
            plain = min(
                plain,
                try UnpacedLegs.cost("PCMU", AudioStreamConfiguration(), options) { link, _ in link }
            )
            let cost = try UnpacedLegs.cost("PCMU", AudioStreamConfiguration(), options) { link, leg in
                let path = SecurePath()
                path.offer(sending: try keys(.aes128CM80, leg), receiving: try keys(.aes128CM80, leg ^ 1))
                return SecureLink(path, over: link)
            }
            secured = min(secured, cost)
        }
        return Figure(
            "secured: a PCMU leg more than in the clear",
            secured - plain,
            "us/leg-s",
            .atMost(55),
            note: "\(Report.number(secured)) / \(Report.number(plain))"
        )
    }
}
