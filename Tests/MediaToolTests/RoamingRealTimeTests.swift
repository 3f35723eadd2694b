import Foundation
import Glibc
import TestSupport
import Testing

/// Calls of phones whose network is changed under them: addresses, cables and interfaces that come and go, in namespaces.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine, .namespaces) struct RoamingRealTimeTests {
    /// What happens to the network of a phone in a call, by ip(8), and what it comes to.
    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// At the phone: `a0` and `c0` are its interfaces, and `a0` leads out at first.
        var phone = ""
        /// In the middle, whose ends of the cables are `b0` and `d0`.
        var middle = ""
        /// Whether the phone is to hear that there is no network, before what follows is done.
        var isLost = false
        /// What is done then, at the phone and in the middle.
        var phoneThen = ""
        var middleThen = ""
        /// Where the phone is behind it.
        var host = "192.0.2.1"
    }

    private static let backByA0 = "route add default via 192.0.2.9 dev a0"

    static let faults = [
        Fault(
            testDescription: "another address",
            phone: "address del 192.0.2.1/24 dev a0; address add 192.0.2.2/24 dev a0; \(backByA0)",
            host: "192.0.2.2"
        ),
        Fault(
            testDescription: "the same address, a while later",
            phone: "address del 192.0.2.1/24 dev a0",
            isLost: true,
            phoneThen: "address add 192.0.2.1/24 dev a0; \(backByA0)"
        ),
        Fault(
            testDescription: "the interface is down and up",
            phone: "link set a0 down",
            isLost: true,
            phoneThen: "link set a0 up; \(backByA0)"
        ),
        Fault(
            testDescription: "the cable is out and in",
            middle: "link set b0 down",
            isLost: true,
            middleThen: "link set b0 up"
        ),
        Fault(
            testDescription: "another interface takes the route",
            phone: "route add default via 198.18.7.9 dev c0 metric 1",
            host: "198.18.7.1"
        ),
        Fault(
            testDescription: "the interface is gone, and another one leads out",
            phone: "route add default via 198.18.7.9 dev c0 metric 900; link del a0",
            host: "198.18.7.1"
        ),
        Fault(
            testDescription: "addresses that are gone as soon as the phone is there",
            phone: """
                address del 192.0.2.1/24 dev a0; address add 192.0.2.2/24 dev a0; \(backByA0)
                address del 192.0.2.2/24 dev a0; address add 192.0.2.3/24 dev a0; \(backByA0)
                address del 192.0.2.3/24 dev a0; address add 192.0.2.4/24 dev a0; \(backByA0)
                """,
            host: "192.0.2.4"
        ),
    ]

    @Test(arguments: thorough(faults, each: 2), thorough(["udp", "tcp"], quick: ["udp"]))
    func `a call goes on`(fault: Fault, transport: String) async throws {
        let world = try await RoamingWorld(transport)
        try world.call()
        let registrations = world.alice.count(#""event":"registered""#)
        try world.phone.ip(fault.phone)
        try world.middle.ip(fault.middle)
        if fault.isLost { #expect(world.alice.prints(#""event":"unregistered""#), "\(world.alice.story)") }
        try world.phone.ip(fault.phoneThen)
        try world.middle.ip(fault.middleThen)
        if fault.host != "192.0.2.1" {
            #expect(world.alice.prints(#""event":"moved","local":"\#(fault.host):"#), "\(world.alice.story)")
        }
        #expect(world.alice.prints { _ in world.alice.count(#""event":"registered""#) > registrations })
        try world.expectSoundBothWays()
        let bindings = try world.server.jsonLines().filter { $0["user"] as? String == "alice" }
        let contact = bindings.last?["contact"] as? String ?? ""
        #expect(contact.hasPrefix("sip:alice@\(fault.host):"))
        try world.close()
    }

    @Test func `a call whose way is found by ICE goes on at another address, and back`() async throws {
        let world = try await RoamingWorld("udp", ["--srtp", "dtls", "--ice"])
        try world.call()
        for (change, host) in [
            ("route add default via 198.18.7.9 dev c0 metric 1", "198.18.7.1"),
            ("route del default via 198.18.7.9 dev c0 metric 1", "192.0.2.1"),
        ] {
            try world.phone.ip(change)
            #expect(world.alice.prints(#""event":"moved","local":"\#(host):"#), "\(world.alice.story)")
            let begin = ContinuousClock.now
            for one in [world.alice, world.bob] {
                let former = try #require(try one.received(moreThan: 0), "\(one.story)")
                #expect(try one.received(moreThan: former + 20) != nil, "\(one.story)")
            }
            // Without an ICE restart, the former way has to be silent for 8 s first.
            #expect(ContinuousClock.now - begin < .seconds(7))
            try world.expectSoundBothWays()
        }
        try world.close()
    }

    @Test func `a call that is held comes back at another address, and one that comes there rings`() async throws {
        let world = try await RoamingWorld("udp")
        try world.call()
        try world.alice.say("hold")
        #expect(world.bob.prints(#""event":"held""#), "\(world.bob.story)")
        try world.phone.ip("route add default via 198.18.7.9 dev c0 metric 1")
        #expect(world.alice.prints(#""event":"moved""#))
        try world.alice.say("resume")
        #expect(world.bob.prints(#""event":"resumed""#), "\(world.bob.story)")
        try world.expectSoundBothWays()
        try world.bob.say("end")
        #expect(world.alice.prints(#""event":"report""#), "\(world.alice.story)")
        try world.bob.say("call sip:alice@example.test")
        #expect(world.alice.prints(#""event":"incoming""#), "\(world.alice.story)")
        try world.alice.say("answer")
        try world.expectSoundBothWays()
        try world.close()
    }
}

/// Alice's phone in a network that changes, joined by two cables to the middle, where the server and Bob's phone stay.
private final class RoamingWorld {
    let phone: NetworkNamespace
    let middle: NetworkNamespace
    let server: ToolRun
    let alice: PhoneRun
    let bob: PhoneRun
    private let folder: Scratch
    private var keyCount = 0

    init(_ transport: String, _ options: [String] = []) async throws {
        (phone, middle) = (try await .make(), try await .make())
        folder = try Scratch()
        try phone.ip(
            """
            link add a0 type veth peer name b0 netns \(middle.path); link add c0 type veth peer name d0 netns \(middle.path)
            link set a0 up; link set c0 up; address add 192.0.2.1/24 dev a0; address add 198.18.7.1/24 dev c0
            """
        )
        try middle.ip(
            """
            link set b0 up; link set d0 up; address add 192.0.2.9/24 dev b0; address add 198.18.7.9/24 dev d0
            address add 203.0.113.5/32 dev lo; address add 203.0.113.6/32 dev lo
            """
        )
        try phone.ip("route add default via 192.0.2.9 dev a0 metric 500")
        let place = "203.0.113.5:5060"
        let serving = ["sip", "server", "--domain", "example.test", "--local", place, "--json"]
        server = try ToolRun(Array((middle.command + [ToolRun.path] + serving).dropFirst()), program: middle.command[0])
        try #require(server.printed(#""event":"listening""#), "\(server.errors)")
        let proxy = ["--proxy", "sip:\(place);lr;transport=\(transport)"]
        let way = ["--transport", transport] + proxy + options + ["--account"]
        alice = try PhoneRun(folder, at: nil, in: phone, way + ["sip:alice@example.test"])
        bob = try PhoneRun(folder, at: "203.0.113.6:0", in: middle, way + ["sip:bob@example.test"])
        for one in [alice, bob] { try #require(one.prints(#""event":"registered""#), "\(one.run.errors)") }
    }

    deinit {
        for run in [alice.run, bob.run, server] where run.isRunning { run.killAtOnce() }
    }

    /// Alice calls Bob.
    func call() throws {
        try alice.say("call sip:bob@example.test")
        try #require(bob.prints(#""event":"incoming""#), "\(alice.story)")
        try bob.say("answer")
        try expectSoundBothWays()
    }

    /// Each hears packets, and the keys of the other.
    func expectSoundBothWays(sourceLocation: SourceLocation = #_sourceLocation) throws {
        for one in [alice, bob] {
            let former = try #require(try one.received(moreThan: 0), "\(one.story)", sourceLocation: sourceLocation)
            let received = try one.received(moreThan: former + 20)
            try #require(received != nil, "\(one.story)", sourceLocation: sourceLocation)
        }
        keyCount += 1
        let key = "\(keyCount)"
        for (one, other) in [(alice, bob), (bob, alice)] {
            try one.say("keys \(key)")
            let isHeard = other.prints { $0.contains(#""digit":"\#(key)""#) }
            #expect(isHeard, "\(other.story)", sourceLocation: sourceLocation)
        }
    }

    /// Both hang up, and all end in order.
    func close() throws {
        for one in [alice, bob] {
            try one.say("quit")
            #expect(one.ends() == 0, "\(one.run.errors)")
        }
        server.interrupt()
        #expect(server.wait() == 0, "\(server.errors)")
    }
}
