@testable import CallBasics
import CMeasure
import EngineBenchmarks
import Glibc

@testable import MediaEngine
@testable import MediaTransport
@testable import SDP

/// What a secured leg notices of forged packets, and what the ticks of many notice of handshakes.
enum SecuredLoad {
    static func measure(_ options: Options) async throws -> [Figure] {
        [try await forged(options), try await handshakes(options)].flatMap(\.self)
    }

    // MARK: Forged packets

    private static let forgedPerSecond = 20_000

    /// CPU of the process but for who sends, and packets lost, with forged ones and without; the best of all runs.
    private static func forged(_ options: Options) async throws -> [Figure] {
        var (quiet, loud, lost) = (Double.infinity, Double.infinity, 1.0)
        for _ in 0..<options.repetitions {
            quiet = min(quiet, try await leg(forged: 0).cpu)
            let run = try await leg(forged: forgedPerSecond)
            (loud, lost) = (min(loud, run.cpu), min(lost, run.lost))
        }
        let what = "secured: \(forgedPerSecond) forged packets a second at a leg"
        return [
            Figure("\(what), real ones lost", 100 * lost, "%", .atMost(1)),
            Figure(
                "\(what), CPU more",
                loud - quiet,
                "ms/s",
                .atMost(20),
                note: "\(Report.number(loud)) / \(Report.number(quiet))"
            ),
        ]
    }

    /// A leg of PCMU, and a socket that sends it what its peer does, and forged packets from the same address, which say that
    /// they follow.
    private static func leg(forged count: Int) async throws -> (cpu: Double, lost: Double) {
        let engine = try CallEngine(CallEngineConfiguration())
        let peer = try UDPSocket(bind: .loopback(port: 0))
        let (path, suite) = (SecurePath(), SRTPSuite.aes128CM80)
        path.offer(sending: try SecuredSound.keys(suite, 1), receiving: try SecuredSound.keys(suite, 2))
        var configuration = CallConfiguration(network: .udp(local: .loopback(port: 0)))
        configuration.agreement.codec = "PCMU"
        configuration.agreement.remote = peer.localAddress
        configuration.agreement.isSecured = true
        (configuration.source, configuration.sink, configuration.security) = (.silence, .none, path)
        let call = try await engine.makeCall(configuration)
        usleep(200_000)
        let seconds = 5
        let (process, own) = (measure_process_cpu(), measure_thread_cpu())
        try send(to: call.localAddress, by: peer, try SecuredSound.keys(suite, 2), forged: count, seconds: seconds)
        let cpu = Double(measure_process_cpu() - process - (measure_thread_cpu() - own)) / 1e6 / Double(seconds)
        usleep(200_000)
        let received = call.report().received.packets
        let refused = path.statistics.unauthentic
        await engine.shutDown()
        guard refused >= count * seconds / 2 else {
            throw Options.Wrong(description: "\(refused) of \(count * seconds) forged packets came")
        }
        return (cpu, 1 - Double(received) / Double(50 * seconds))
    }

    private static func send(
        to leg: SocketAddress,
        by peer: UDPSocket,
        _ keys: SRTPKeys,
        forged count: Int,
        seconds: Int
    ) throws {
        var sender = SRTPSender(keys)
        func packet(_ number: Int, _ byteCount: Int) -> [UInt8] {
            let (sequence, time) = (UInt16(truncatingIfNeeded: number), UInt32(truncatingIfNeeded: number * 160))
            let head = [sequence.bigEndian].withUnsafeBytes { Array($0) }
            let stamp = [time.bigEndian].withUnsafeBytes { Array($0) }
            let body = [UInt8](repeating: UInt8(truncatingIfNeeded: number &* 31), count: byteCount - 12)
            return [0x80, 0] + head + stamp + [0, 0, 0, 9] + body
        }
        let begin = measure_now()
        for millisecond in 0..<1000 * seconds {
            let due = begin + Int64(millisecond) * 1_000_000
            while case let rest = due - measure_now(), rest > 0 { usleep(UInt32(rest / 1000 + 1)) }
            let number = millisecond / 20
            for index in 0..<count / 1000 {
                peer.send(packet(number + index, 182).span, to: leg, at: .zero)
            }
            guard millisecond % 20 == 0 else { continue }
            var real = packet(number, 172) + [UInt8](repeating: 0, count: 64)
            var span = real.mutableSpan
            let byteCount = try sender.protect(&span, count: 172).get()
            peer.send(real.span.extracting(..<byteCount), to: leg, at: .zero)
        }
    }

    // MARK: Handshakes

    /// So many pairs of calls, whose keys are made at the same time.
    private static let pairCount = 50
    private static let roundCount = 20

    /// How late ticks are while handshakes run, over all rounds.
    private static func handshakes(_ options: Options) async throws -> [Figure] {
        var best = Double.infinity
        for _ in 0..<options.repetitions { best = min(best, try await ticks()) }
        return [
            Figure(
                "secured: p99 of the ticks' lateness during \(pairCount) handshakes",
                best,
                "ms",
                .atMost(0.3),
                note: "\(roundCount) times, of \(2 * pairCount) legs of one engine"
            )
        ]
    }

    private static func ticks() async throws -> Double {
        let engine = try CallEngine(CallEngineConfiguration())
        let identity = try DTLSIdentity()
        let paths = (0..<2 * pairCount).map { _ in DTLSPath(identity) }
        // Together, so that no two have the same port.
        let open = try (0..<2 * pairCount).map { _ in try UDPSocket(bind: .loopback(port: 0)) }
        let sockets = open.map(\.localAddress)
        for socket in open { socket.close() }
        _ = try await engine.makeCalls(
            paths.indices.map { leg in
                var call = CallConfiguration(network: .udp(local: sockets[leg]))
                call.name = "leg \(leg)"
                call.agreement.codec = "PCMU"
                call.agreement.remote = sockets[leg ^ 1]
                call.agreement.isSecured = true
                (call.source, call.sink, call.security) = (.silence, .none, paths[leg])
                return call
            }
        )
        for _ in 0..<roundCount {
            for pair in 0..<pairCount {
                let sides = try associations(identity)
                for (leg, side) in zip([2 * pair, 2 * pair + 1], sides) {
                    paths[leg].connect(side, isMultiplexed: true, to: sockets[leg ^ 1], control: nil)
                }
            }
            for path in paths { _ = try await path.connected() }
        }
        let p99 = engine.tickStatistics.lateness.quantile(0.99).inMilliseconds
        for path in paths { await path.close() }
        await engine.shutDown()
        return p99
    }

    /// What an offer and its answer agree on: a new association for both.
    private static func associations(_ identity: DTLSIdentity) throws -> [AgreedAssociation] {
        var generator = SystemRandomNumberGenerator()
        var sides = (0..<2).map { number in
            let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
            var medium = MediaConfiguration(port: 4000, formats: [format])
            medium.secure(by: identity, using: &generator)
            let session = SessionConfiguration(address: "127.0.0.1", media: [medium])
            return OfferAnswer(configuration: session, sessionID: UInt64(number))
        }
        try sides[1].receiveOffer(sides[0].makeOffer())
        try sides[0].receiveAnswer(sides[1].makeAnswer())
        return sides.compactMap { $0.agreed?.audio?.association }
    }
}
