import CMeasure
import EngineBenchmarks
import Foundation
import Glibc

/// A phone of the tool in a call, whose address is changed under it, with nobody telling it but the kernel: how soon it sends
/// SIP from the next one, and sound is heard both ways again.
enum Roaming {
    private static let changeCount = 20
    private static let server = "203.0.113.5"
    private static let otherHost = "203.0.113.6"
    /// What the tool prints then, and not when it is "unregistered".
    private static let registered = #""registered""#

    /// From the kernel's word of the address until what there is to be heard; in ms.
    private struct Times {
        var signalling: [Double] = []
        var sound: [Double] = []
    }

    static func measure(_ options: Options) async throws -> [Figure] {
        guard let tool = try options.tool(for: "roaming") else { return [] }
        var all: [Figure] = []
        for (way, words, most) in [("", [], 150.0), (" by ICE", ["--srtp", "dtls", "--ice"], 1000)] {
            let networks = [measure_make_network(), measure_make_network()]
            defer { for network in networks where network >= 0 { close(network) } }
            guard networks.allSatisfy({ $0 >= 0 }), access(nsenter, X_OK) == 0 else {
                return [Figure("roaming", skipped: "needs the right to make a network namespace")]
            }
            let (address, interface) = try await Cores.inDirectory { try await run(tool, words, networks, in: $0) }
            all += figures("another address on one interface", way, most, address)
            all += figures("the address of one of two is gone", way, most, interface)
        }
        return all
    }

    private static func figures(_ name: String, _ way: String, _ most: Double, _ times: Times) -> [Figure] {
        [("first packet of SIP\(way)", times.signalling, 20.0), ("sound both ways\(way)", times.sound, most)].flatMap {
            what,
            times,
            most in
            let times = times.sorted()
            return [
                Figure(
                    "roaming: \(name), until \(what), p50",
                    times[times.count / 2],
                    "ms",
                    note: "\(times.count) changes"
                ),
                Figure("roaming: \(name), until \(what), longest", times[times.count - 1], "ms", .atMost(most)),
            ]
        }
    }

    // MARK: The networks

    private static let nsenter = "/usr/bin/nsenter"

    private static func inside(_ network: CInt) -> String { "--net=/proc/\(getpid())/fd/\(network)" }

    private static func start(_ network: CInt, _ words: [String], _ output: String) throws -> ToolProcess {
        try ToolProcess(nsenter, [inside(network)] + words, output: output)
    }

    /// Has ip(8) do the lines; it may still be at it.
    private static func ip(_ network: CInt, _ lines: String, in directory: String) throws -> ToolProcess {
        try lines.write(toFile: directory + "/lines", atomically: false, encoding: .utf8)
        return try start(network, ["ip", "-batch", directory + "/lines"], directory + "/ip")
    }

    /// Has ip(8) do the lines.
    private static func set(_ network: CInt, _ lines: String, in directory: String) throws {
        guard try ip(network, lines, in: directory).wait() == 0 else {
            throw Options.Wrong(description: "ip has failed:\n\(lines)")
        }
    }

    private static func run(_ tool: String, _ options: [String], _ networks: [CInt], in directory: String) async throws
        -> (Times, Times)
    {
        let (roaming, middle) = (networks[0], networks[1])
        // The phone has two cables to the middle, where the server and the other side stay.
        try set(
            roaming,
            """
            link set lo up
            link add a0 type veth peer name b0 netns /proc/\(getpid())/fd/\(middle)
            link add c0 type veth peer name d0 netns /proc/\(getpid())/fd/\(middle)
            link set a0 up
            link set c0 up
            address add 192.0.2.100/24 dev a0
            """,
            in: directory
        )
        try set(
            middle,
            """
            link set lo up
            link set b0 up
            link set d0 up
            address add 192.0.2.9/24 dev b0
            address add 198.18.7.9/24 dev d0
            address add \(server)/32 dev lo
            address add \(otherHost)/32 dev lo
            """,
            in: directory
        )
        try set(roaming, "route add default via 192.0.2.9 dev a0 metric 500", in: directory)
        let watch = (addresses: measure_open_addresses(roaming), capture: measure_open_capture(middle))
        defer {
            close(watch.addresses)
            close(watch.capture)
        }
        let serving = ["sip", "server", "--domain", "example.test", "--local", server + ":5060", "--json"]
        let sip = try start(middle, [tool] + serving, directory + "/server")
        defer { sip.end() }
        try await sip.printed("listening")
        let way = options + ["--transport", "udp", "--proxy", "sip:\(server):5060;lr", "--json", "--account"]
        let answering = ["sip", "answer", "--echo", "--local", otherHost + ":5070"] + way + ["sip:bob@example.test"]
        let other = try start(middle, [tool] + answering, directory + "/other")
        defer { other.end() }
        try await other.printed(registered)
        let words = [inside(roaming), tool, "phone", "--au", "null", "--aq", "null"] + way + ["sip:alice@example.test"]
        let phone = try ToolProcess(nsenter, words, output: directory + "/phone", takesLines: true)
        defer { phone.end() }
        try await phone.printed(registered)
        try phone.say("call sip:bob@example.test")
        try await phone.printed(#"stage":"connected"#)

        var (address, interface) = (Times(), Times())
        for number in 0..<changeCount {
            let (former, next) = ("192.0.2.\(100 + number)", "192.0.2.\(101 + number)")
            try await change(
                phone,
                watch,
                to: next,
                since: (MEASURE_ADDED, next),
                &address,
                by: try ip(
                    roaming,
                    """
                    address del \(former)/24 dev a0
                    address add \(next)/24 dev a0
                    route add default via 192.0.2.9 dev a0 metric 500
                    """,
                    in: directory
                )
            )
        }
        let (first, second) = ("192.0.2.\(100 + changeCount)", "198.18.7.1")
        for _ in 0..<changeCount {
            // The way by c0 is a gain, which the phone takes when it has lasted.
            let count = phone.count(registered)
            try set(
                roaming,
                "address add \(second)/24 dev c0\nroute add default via 198.18.7.9 dev c0 metric 1",
                in: directory
            )
            try await phone.printed(registered, times: count + 1)
            try await change(
                phone,
                watch,
                to: first,
                since: (MEASURE_REMOVED, second),
                &interface,
                by: try ip(roaming, "address del \(second)/24 dev c0", in: directory)
            )
        }
        return (address, interface)
    }

    // MARK: One change

    /// Notes how long the phone takes to `host`, from what the kernel says of an address on.
    private static func change(
        _ phone: ToolProcess,
        _ watch: (addresses: CInt, capture: CInt),
        to host: String,
        since start: (kind: Int, host: String),
        _ times: inout Times,
        by changing: @autoclosure () throws -> ToolProcess
    ) async throws {
        let count = phone.count(registered)
        // What was carried before is of no interest.
        var event = measure_event()
        while measure_next_event(watch.addresses, watch.capture, 0, &event) == 1 {}
        let ip = try changing()
        let (own, changed) = (number(host), number(start.host))
        var (begin, signalling, sent, heard): (Int64?, Int64?, Int64?, Int64?)
        let limit = ContinuousClock.now + .seconds(5)
        while signalling == nil || sent == nil || heard == nil {
            guard .now < limit, measure_next_event(watch.addresses, watch.capture, 100, &event) >= 0 else {
                throw Options.Wrong(description: "the phone did not move to \(host)")
            }
            let isSound = event.payload.0 >> 6 == 2 && !(192...223).contains(event.payload.1)
            let isMethod = (0x41...0x5A).contains(event.payload.0)
            switch Int(event.kind) {
            case start.kind where event.source == changed: begin = begin ?? event.time
            case MEASURE_DATAGRAM where event.source == own && isSound: sent = sent ?? event.time
            case MEASURE_DATAGRAM where event.target == own && isSound: heard = heard ?? event.time
            case MEASURE_DATAGRAM where event.source == own && isMethod: signalling = signalling ?? event.time
            default: break
            }
        }
        guard let begin, let signalling, let sent, let heard, ip.wait() == 0 else {
            throw Options.Wrong(description: "the kernel told nothing of \(start.host)")
        }
        times.signalling.append(Double(signalling - begin) / 1e6)
        times.sound.append(Double(max(sent, heard) - begin) / 1e6)
        try await phone.printed(registered, times: count + 1)
    }

    private static func number(_ host: String) -> UInt32 {
        host.split(separator: ".").reduce(0) { $0 << 8 | (UInt32($1) ?? 0) }
    }
}
