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
        world.run(for: .milliseconds(50))
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

    @Test(arguments: [
        ([NATKind.none, .none], 60), ([.portRestricted, .portRestricted], 150),
        ([.symmetric, .addressRestricted], 250),
    ]) func `it is found soon`(kinds: [NATKind], milliseconds: Int) {
        var world = NATWorld(kinds, seed: 1)
        world.delay = .milliseconds(10)
        world.begin()
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

    @Test func `the way stays open for as long as both agree`() throws {
        var world = Self.connected()
        world.run(for: .seconds(600))
        for agent in world.agents { #expect(try #require(agent.end) > world.now + .seconds(20)) }
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
