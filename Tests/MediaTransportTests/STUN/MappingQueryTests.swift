import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// How this side is seen from outside: whom it asks, how long it waits, and which answers count.
@Suite(.tags(.rfc)) struct MappingQueryTests {
    private static let servers = [1, 2].map { SocketAddress(ipv4: 0xC000_0200 + $0, port: 3478) }
    private static let seen = SocketAddress(ipv4: 0xCB00_7109, port: 40_000)

    private var query: MappingQuery
    private var times: [Int64] = []

    init() {
        var generator = SeededGenerator(seed: 1)
        query = MappingQuery(Self.servers, &generator, at: .zero)
    }

    private func answer(
        to question: [UInt8],
        _ kind: STUNMessage.Class = .success,
        _ attribute: STUNAttribute = .xorMappedAddress,
        _ change: (inout STUNWriter) -> Void = { _ in }
    ) throws -> [UInt8] {
        var writer = STUNWriter(kind, .binding, try #require(STUNMessage(parsing: question)).transaction)
        writer.append(attribute, Self.seen)
        change(&writer)
        return writer.finish(withFingerprint: true)
    }

    /// Lets time go by until it is over; answers when each question left, in ms.
    private mutating func run(from begin: MediaTime = .zero) -> (times: [Int64], end: MediaTime) {
        var (now, times) = (begin, [Int64]())
        while let next = query.advance(to: now) {
            for _ in query.takeDatagrams() { times.append(now.nanoseconds / 1_000_000) }
            now = next
        }
        return (times, now)
    }

    @Test mutating func `both are asked three times, and waited for 1 s`() {
        let (times, end) = run()
        #expect(times == [0, 0, 150, 150, 450, 450] && end == .zero + .seconds(1) && query.answers.isEmpty)
    }

    @Test mutating func `when one has answered, the other has 300 ms`() throws {
        _ = query.advance(to: .zero)
        let asked = query.takeDatagrams()
        query.take(try answer(to: asked[1].bytes), from: Self.servers[1], at: .zero)
        #expect(query.answers.first?.mapped == Self.seen && query.answers.first?.server == Self.servers[1])
        let (times, end) = run()
        #expect(times == [150] && end == .zero + .milliseconds(300))
    }

    @Test mutating func `when both have answered, it is over, and the first one counts`() throws {
        _ = query.advance(to: .zero)
        let asked = query.takeDatagrams()
        for index in [1, 0] { query.take(try answer(to: asked[index].bytes), from: Self.servers[index], at: .zero) }
        #expect(query.advance(to: .zero) == nil && query.answers.first?.server == Self.servers[0])
    }

    @Test mutating func `an old server's plain address counts, too`() throws {
        _ = query.advance(to: .zero)
        let asked = query.takeDatagrams()[0]
        query.take(try answer(to: asked.bytes, .success, .mappedAddress), from: asked.destination, at: .zero)
        #expect(query.answers.first?.mapped == Self.seen)
    }

    @Test mutating func `nothing else counts`() throws {
        _ = query.advance(to: .zero)
        let (asked, other) = (query.takeDatagrams()[0], Self.servers[1])
        let good = try answer(to: asked.bytes)
        for count in 0..<good.count { query.take(Array(good[..<count]), from: asked.destination, at: .zero) }
        query.take(good, from: other, at: .zero)
        var changed = good
        changed[12] ^= 1
        for datagram in [
            changed, asked.bytes, try answer(to: asked.bytes, .failure),
            try answer(to: asked.bytes, .success, .software),
            try answer(to: asked.bytes) { $0.append(STUNAttribute(rawValue: 0x7001), [1]) },
        ] { query.take(datagram, from: asked.destination, at: .zero) }
        #expect(query.answers.isEmpty)
    }
}
