import CallBasics
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// Both sides of ICE behind NATs of every kind: who finds a way, and how soon.
@Suite(.tags(.rfc)) struct NATWorldTests {
    /// Sound that each side hears of what the other sends to where its agent says.
    private static func sound(_ world: inout NATWorld) -> [Int] {
        let before = world.heard
        for side in [0, 1] { world.sendSound(from: side) }
        world.run(for: .milliseconds(100))
        return [world.heard[0] - before[0], world.heard[1] - before[1]]
    }

    @Test(arguments: NATKind.allCases, NATKind.allCases)
    func `a way is found exactly where there is one, whatever is lost`(one: NATKind, two: NATKind) {
        for seed in 0..<100 as Range<UInt64> {
            var world = NATWorld([one, two], seed: seed)
            world.begin(controlling: seed % 2 == 0 ? [true, false] : [false, true])
            world.lossPercent = Int(seed % 4) * 5
            world.run(for: .seconds(20)) { $0.hasWay }
            #expect(world.hasWay == one.finds(two), "seed \(seed)")
            world.lossPercent = 0
            #expect(Self.sound(&world) == (one.finds(two) ? [1, 1] : [0, 0]), "seed \(seed)")
        }
    }

    @Test(arguments: NATKind.allCases, NATKind.allCases)
    func `with a relay a way is always found, and goes by it only where there is no other`(one: NATKind, two: NATKind) {
        for seed in 0..<100 as Range<UInt64> {
            var world = NATWorld([one, two], seed: seed)
            let relayed: [Set<Int>] = [[0], [1], [0, 1]]
            world.begin(
                controlling: seed % 2 == 0 ? [true, false] : [false, true],
                relayed: relayed[Int(seed % 3)],
                nonceLife: seed % 5 == 0 ? 1 : .max
            )
            world.lossPercent = Int(seed % 4) * 5
            // A check that comes before the server lets it through is sent again after 0.5, 1, 2, 4 and 8 s.
            world.run(for: .seconds(40)) { $0.hasWay }
            world.lossPercent = 0
            // So long as the server may take to know the channel when a request was lost.
            world.run(for: .seconds(2))
            #expect(world.hasWay && Self.sound(&world) == [1, 1], "seed \(seed)")
            let routes = world.agents.compactMap(\.destination)
            let isRelayed = routes.contains { $0.isRelayed || $0.peer.host == NATWorld.server.host }
            #expect(isRelayed || one.finds(two), "seed \(seed)")
            if seed % 4 == 0 { #expect(isRelayed != one.finds(two), "seed \(seed) \(routes)") }
        }
    }

    @Test(arguments: [
        ([NATKind.none, .none], [], 60), ([.portRestricted, .portRestricted], [], 150),
        ([.symmetric, .addressRestricted], [], 250), ([.symmetric, .symmetric], [0, 1], 250),
        ([.symmetric, .symmetric], [1], 250),
    ]) func `it is found soon`(kinds: [NATKind], relayed: [Int], milliseconds: Int) {
        var world = NATWorld(kinds, seed: 1)
        world.delay = .milliseconds(10)
        world.begin(relayed: Set(relayed))
        let begin = world.now
        world.run(for: .seconds(20)) { world in world.agents.allSatisfy { $0.destination != nil } }
        #expect(world.now - begin <= .milliseconds(milliseconds), "\(world.now - begin)")
    }

    @Test(arguments: [true, false]) func `two sides that believe the same of who controls settle it`(both: Bool) {
        for seed in 0..<20 as Range<UInt64> {
            var world = NATWorld([.portRestricted, .portRestricted], seed: seed)
            world.begin(controlling: [both, both])
            world.run(for: .seconds(5)) { $0.hasWay }
            #expect(world.hasWay && Self.sound(&world) == [1, 1], "seed \(seed)")
        }
    }

    @Test(arguments: NATKind.allCases) func `a side that only answers is found from behind each NAT`(kind: NATKind) {
        var world = NATWorld([kind, .none], seed: 3)
        world.begin(lite: 1)
        world.run(for: .seconds(5)) { $0.hasWay }
        #expect(world.hasWay && Self.sound(&world) == [1, 1])
    }

    // MARK: Afterwards

    private static func connected(controlling: [Bool] = [true, false]) -> NATWorld {
        var world = NATWorld([.portRestricted, .none], seed: 4)
        world.begin(controlling: controlling)
        world.run(for: .seconds(5)) { $0.hasWay }
        return world
    }

    @Test func `a relay that the way does not need is given back`() {
        var world = NATWorld([.portRestricted, .none], seed: 5)
        world.begin(relayed: [0, 1])
        #expect(world.relay.clientCount == 2)
        world.run(for: .seconds(20))
        #expect(world.relay.clientCount == 0 && Self.sound(&world) == [1, 1])
    }

    @Test(arguments: [1, 3, Int.max]) func `a way by a relay stays open, whatever nonces it wants`(nonceLife: Int)
        throws
    {
        var world = NATWorld([.symmetric, .symmetric], seed: 6)
        world.begin(relayed: [0, 1], nonceLife: nonceLife)
        // Longer than permissions, channels and what was given last.
        for _ in 0..<30 {
            world.run(for: .seconds(60))
            #expect(Self.sound(&world) == [1, 1])
        }
        for side in world.agents { #expect(try #require(side.end) > world.now + .seconds(20)) }
        #expect(nonceLife == .max || world.relay.staleCount > 5)
    }

    @Test func `the way stays open for as long as both agree`() throws {
        var world = Self.connected()
        world.run(for: .seconds(600))
        for side in world.agents { #expect(try #require(side.end) > world.now + .seconds(20)) }
        #expect(Self.sound(&world) == [1, 1])
    }

    @Test(arguments: [0, 1]) func `nothing is asked 30 s after the other side has fallen silent`(side: Int) throws {
        var world = Self.connected()
        world.isOn[side] = false
        world.run(for: .seconds(37))
        #expect(try #require(world.agents[1 - side].end) <= world.now)
        #expect(world.agents[1 - side].next == nil)
    }

    @Test(arguments: [[true, false], [false, true]])
    func `a side whose NAT has forgotten it is heard again, whoever controls`(controlling: [Bool]) {
        var world = Self.connected(controlling: controlling)
        world.forgetPorts(of: 0)
        world.run(for: .seconds(20))
        #expect(Self.sound(&world) == [1, 1])
    }
}
