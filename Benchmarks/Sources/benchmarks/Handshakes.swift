@testable import CallBasics
import CMeasure
import EngineBenchmarks
import Glibc

@testable import MediaEngine
@testable import MediaTransport

/// What a handshake of DTLS costs each side, and how long it takes where datagrams are lost.
enum Handshakes {
    /// Two sides, and the network between them.
    private final class Pair {
        private var active: DTLSAssociation
        private var passive: DTLSAssociation

        init(_ one: DTLSIdentity, _ other: DTLSIdentity) throws {
            active = try DTLSAssociation(one, role: .active, fingerprints: [other.fingerprint])
            passive = try DTLSAssociation(other, role: .passive, fingerprints: [one.fingerprint])
        }

        /// Carries what both send, but for what is lost, and repeats what is due.
        func turn(_ isLost: () -> Bool) {
            while true {
                let (there, back) = (active.takeDatagrams(), passive.takeDatagrams())
                guard !there.isEmpty || !back.isEmpty else { break }
                for datagram in there where !isLost() { passive.receive(datagram.span) }
                for datagram in back where !isLost() { active.receive(datagram.span) }
            }
            if active.timeout ?? .seconds(1) <= .zero { active.handleTimeout() }
            if passive.timeout ?? .seconds(1) <= .zero { passive.handleTimeout() }
        }

        var isConnected: Bool {
            guard case .connected = active.state, case .connected = passive.state else { return false }
            return true
        }
    }

    static func measure(_ options: Options) throws -> [Figure] {
        [try cost(options), try lossy(options)]
    }

    /// CPU of both sides over two, the mean of the best round.
    private static func cost(_ options: Options) throws -> Figure {
        let (one, other, count) = (try DTLSIdentity(), try DTLSIdentity(), 100)
        var best = Double.infinity
        for _ in 0..<2 * options.repetitions {
            let start = measure_thread_cpu()
            for _ in 0..<count {
                let pair = try Pair(one, other)
                pair.turn { false }
                guard pair.isConnected else { throw Options.Wrong(description: "a handshake does not end") }
            }
            best = min(best, Double(measure_thread_cpu() - start) / Double(2 * count))
        }
        return Figure("secured: a DTLS handshake, CPU of a side", best / 1e6, "ms", .atMost(0.6))
    }

    /// How long handshakes take while a fifth of all datagrams is lost, all of them beside each other.
    private static func lossy(_ options: Options) throws -> Figure {
        let (one, other) = (try DTLSIdentity(), try DTLSIdentity())
        var generator = SeededGenerator(seed: 7)
        var running = try (0..<200 * options.repetitions).map { _ in try Pair(one, other) }
        let (start, count) = (MonotonicClock.current, running.count)
        var times: [Double] = []
        while !running.isEmpty, MonotonicClock.current - start < .seconds(30) {
            for pair in running { pair.turn { generator.next() % 5 == 0 } }
            running.removeAll { pair in
                if pair.isConnected { times.append((MonotonicClock.current - start).milliseconds / 1000) }
                return pair.isConnected
            }
            usleep(1000)
        }
        let last = count * 99 / 100
        return Figure(
            "secured: a DTLS handshake where a fifth is lost, p99",
            times.count > last ? times[last] : 30,
            "s",
            .atMost(3),
            note: "\(times.count) of \(count)"
        )
    }
}
