import Testing

@testable import SharedCore

/// Prints what a person can compare; fails only when something is wrong by orders of magnitude.
@Suite(.serialized) struct StoreSpeedTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func `opening the lock and the store takes milliseconds`() async throws {
        let clock = ContinuousClock()
        let creation = try clock.measure { try SharedStore(group: directory.group).close() }
        var locks: [Duration] = []
        var cold: [Duration] = []
        var closing: [Duration] = []
        var warm: [Duration] = []
        for _ in 0..<20 {
            locks.append(
                try clock.measure {
                    let lock = try CoreLock(group: directory.group)
                    #expect(try lock.tryLock(.writer))
                }
            )
            let start = clock.now
            let store = try SharedStore(group: directory.group)
            cold.append(clock.now - start)
            closing.append(try clock.measure { try store.close() })
        }
        let first = try SharedStore(group: directory.group)
        for _ in 0..<20 { warm.append(try clock.measure { try SharedStore(group: directory.group).close() }) }
        try first.close()
        print(
            "created in \(creation); lock opened and taken p50 \(Self.median(locks)); store opened p50 \(Self.median(cold)) "
                + "and closed \(Self.median(closing)) alone, both \(Self.median(warm)) beside another"
        )
        #expect(Self.median(cold) < .seconds(1) && Self.median(locks) < .seconds(1))
    }

    @Test func `a commit takes milliseconds`() async throws {
        let store = try SharedStore(group: directory.group)
        let reader = try SharedStore(group: directory.group)
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let clock = ContinuousClock()
        var inserts: [Duration] = []
        var claims: [Duration] = []
        var acknowledgements: [Duration] = []
        for number in 0..<200 {
            inserts.append(try await clock.measure { _ = try await store.insert(.sample("\(number)"), as: epoch) })
            claims.append(try await clock.measure { _ = try await reader.claim(callID: "\(number)", by: .current) })
            acknowledgements.append(
                try await clock.measure { _ = try await reader.acknowledge(callID: "\(number)", by: .current) }
            )
        }
        print(
            "commit p50: insert \(Self.median(inserts)), claim \(Self.median(claims)), acknowledge "
                + "\(Self.median(acknowledgements))"
        )
        #expect(Self.median(inserts) < .seconds(1))
    }

    private static func median(_ times: [Duration]) -> Duration { times.sorted()[times.count / 2] }
}
