@testable import MediaEngine
import Synchronization
import TestSupport
import Testing

/// The two ends of a link on two threads.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct MemoryLinkRealTimeTests {
    /// What one end has received so far.
    private struct Tally {
        var count = 0
        var last = -1
        var isIntact = true

        /// Takes all that waits.
        mutating func take(from link: MemoryLink) {
            var buffer = [UInt8](repeating: 0, count: 512)
            var target = buffer.mutableSpan
            while let datagram = link.receive(into: &target, at: MediaTime(nanoseconds: .max)) {
                var number = 0
                for index in 0..<4 { number = number << 8 | Int(target[index]) }
                count += 1
                isIntact = isIntact && number > last && datagram.byteCount == MemoryLinkRealTimeTests.length(number)
                for index in 4..<datagram.byteCount where target[index] != UInt8(truncatingIfNeeded: number) {
                    isIntact = false
                }
                last = number
            }
        }
    }

    private static func length(_ number: Int) -> Int { 4 + number % 400 }

    private static func datagram(_ number: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length(number))
        for index in 0..<4 { bytes[index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index)) }
        return bytes
    }

    @Test func `two threads send and receive at once, and all but what is counted arrives whole and in order`()
        async throws
    {
        let (left, right) = MemoryLink.pair()
        let (ends, count) = ([(left, right), (right, left)], thorough(100_000, quick: 20_000))
        let tallies = Mutex([Tally(), Tally()])
        try await onThreads(2) { thread in
            let (own, other) = ends[thread]
            var tally = Tally()
            for number in 0..<count {
                own.send(Self.datagram(number).span, to: other.localAddress, at: MediaTime(nanoseconds: Int64(number)))
                if number % 5 == 0 { tally.take(from: own) }
            }
            tallies.withLock { [tally] in $0[thread] = tally }
        }
        var all = tallies.withLock { $0 }
        for (index, (own, _)) in ends.enumerated() {
            all[index].take(from: own)
            #expect(all[index].isIntact && all[index].count > 0)
            #expect(all[index].count + own.droppedCount == count)
        }
    }

    @Test func `two engines in real time talk over one link`() async throws {
        let engines = try [CallEngine(), CallEngine()]
        let (left, right) = MemoryLink.pair()
        var calls: [Call] = []
        for (engine, (own, other)) in zip(engines, [(left, right), (right, left)]) {
            var configuration = CallConfiguration(network: .link(own, local: own.localAddress))
            configuration.agreement.codec = "PCMU"
            configuration.agreement.remote = other.localAddress
            configuration.source = .samples([Int16](repeating: 4000, count: 8000 * 60), AudioFormat(sampleRate: 8000))
            configuration.sink = .none
            calls.append(try await engine.makeCall(configuration))
        }
        #expect(await Polling.eventually { calls.allSatisfy { $0.report().received.packets > 20 } })
        #expect(calls.allSatisfy { $0.report().received.lost == 0 })
        for engine in engines { await engine.shutDown() }
    }
}
