import CallBasics
import Testing

@testable import SIP

/// The rows of the table of registration, one after another; time is the registration's own.
@Suite struct RegistrationTests {
    private typealias State = Registration.State

    private var registration: Registration
    private var now = MediaTime.zero
    private var sent: [SIPMessage] = []
    private var states: [State] = []
    private var reasons: [Registration.Reason] = []
    private var warnings: [Registration.Warning] = []

    private static let instance = "urn:uuid:00000000-0000-1000-8000-000A95A0E128"
    private static let own = "<sip:bob@192.0.2.2:5070>;+sip.instance=\"<\(instance)>\";reg-id=1"

    private static var configuration: RegistrationConfiguration {
        get throws {
            var configuration = RegistrationConfiguration(
                addressOfRecord: try SIPURI("sip:bob@example.com"),
                registrar: try SIPURI("sip:example.com"),
                contact: try SIPURI("sip:bob@192.0.2.2:5070")
            )
            configuration.instance = instance
            return configuration
        }
    }

    init() throws {
        registration = Registration(try Self.configuration, generator: SeededGenerator(seed: 5))
    }

    private mutating func drain() {
        while let output = registration.poll() {
            switch output {
            case .send(let message): sent.append(message)
            case .state(_, let new, let reason):
                states.append(new)
                reasons.append(reason)
            case .warning(let warning): warnings.append(warning)
            }
        }
    }

    private mutating func wish(_ act: (inout Registration, MediaTime) -> Void) {
        act(&registration, now)
        drain()
    }

    /// Answers the last request.
    private mutating func answer(
        _ status: Int,
        _ headers: (String, String)...,
        surroundings: Registration.Surroundings = Registration.Surroundings()
    ) throws {
        var response = try #require(sent.last).response(status: status, reason: "x", tag: Bytes("t"))
        for (name, value) in headers { try response.append(named: name, value) }
        registration.receive(try SIPMessage(datagram: response.bytes), surroundings, at: now)
        drain()
    }

    private mutating func passDeadline() throws {
        now = try #require(registration.deadline)
        registration.handleTimeout(at: now)
        drain()
    }

    private mutating func change(_ edit: (inout RegistrationConfiguration) -> Void) {
        var configuration = registration.configuration
        edit(&configuration)
        registration.update(configuration, at: now)
        drain()
    }

    private func seconds() throws -> Double {
        let deadline = try #require(registration.deadline)
        return Double((deadline - now).nanoseconds) / 1e9
    }

    @Test mutating func `a REGISTER has what the table says`() throws {
        registration = Registration(try Self.configuration, generator: SeededGenerator(seed: 6))
        change {
            $0.push = [.init("pn-provider", "apns"), .init("pn-prid", "00fc:voip"), .init("pn-param", "A.b.voip")]
            $0.featureTags = ["audio", "+sip.pnsreg"]
        }
        let route = try NameAddress(parsing: Bytes("<sip:proxy.example.com;lr>"))
        change { ($0.routes, $0.headers) = ([route], [.init("X-Door", "front")]) }
        wish { $0.register(at: $1) }
        let message = try #require(sent.first)
        #expect(message.values(named: "X-Door") == ["front"])
        var routed = message
        try routed.append(.via, Bytes("SIP/2.0/UDP 192.0.2.2;branch=z9hG4bKa"))
        _ = try routed.validated()
        #expect(message.method == .register)
        #expect(try message.requestURI().bytes.text == "sip:example.com")
        #expect(message.first(.to)?.text == "<sip:bob@example.com>")
        #expect(try message.from()?.uri.bytes.text == "sip:bob@example.com")
        #expect(try message.from()?.tag != nil)
        #expect(try message.tokens(of: .supported) == ["path", "outbound", "gruu"])
        #expect(message.first(.expires)?.text == "3600")
        #expect(message.first(.route)?.text == "<sip:proxy.example.com;lr>")
        #expect(message.count(of: .via) == 0)
        #expect(
            message.values(of: .contact).map(\.text) == [
                "<sip:bob@192.0.2.2:5070;pn-provider=apns;pn-prid=00fc:voip;pn-param=A.b.voip>"
                    + ";+sip.instance=\"<\(Self.instance)>\";reg-id=1;audio;+sip.pnsreg"
            ]
        )
        #expect(states == [.progress])
    }

    @Test mutating func `Call-ID and From stay, CSeq counts, and another process has another Call-ID`() throws {
        wish { $0.register(at: $1) }
        try answer(200, ("Contact", Self.own))
        wish { $0.refresh(at: $1) }
        #expect(sent[0].callID == sent[1].callID)
        #expect(sent[0].first(.from) == sent[1].first(.from))
        #expect(try sent.map { try $0.cSeq()?.number } == [1, 2])
        var other = Registration(try Self.configuration, generator: SeededGenerator(seed: 6))
        other.register(at: now)
        _ = other.poll()
        guard case .send(let message) = other.poll() else {
            Issue.record("nothing is sent")
            return
        }
        #expect(message.callID != sent[0].callID)
        #expect(message.first(.contact) == sent[0].first(.contact))
    }

    private static let grants: [([(String, String)], UInt32)] = [
        ([("Contact", "\(own);expires=600"), ("Expires", "100")], 600),
        ([("Contact", own), ("Expires", "100")], 100),
        ([("Contact", own)], 3600),
        ([("Contact", "\(own);expires=99999999999")], 3600),
        ([("Contact", "<sip:bob@192.0.2.2:5070>;expires=70")], 70),
        ([("Contact", "<sip:x@192.0.2.3>;expires=7, \(own);expires=71")], 71),
        ([("Expires", "80")], 80),
    ]

    @Test(arguments: grants)
    mutating func `what is granted is of our Contact, else of Expires, else what was asked`(
        headers: [(String, String)],
        granted: UInt32
    ) throws {
        wish { $0.register(at: $1) }
        var response = try sent[0].response(status: 200, reason: "OK", tag: Bytes("t"))
        for (name, value) in headers { try response.append(named: name, value) }
        registration.receive(try SIPMessage(datagram: response.bytes), at: now)
        drain()
        #expect(states == [.progress, .ok])
        #expect(registration.binding?.granted == granted)
        let isListed = headers.contains { $0.0 == "Contact" }
        #expect(warnings == (isListed ? [] : [.nothingListed]))
    }

    @Test(arguments: [
        "<sip:bob@192.0.2.9:5070>;expires=60", "\(RegistrationTests.own);expires=0",
        "<sip:bob@192.0.2.2:5070>;+sip.instance=\"<urn:uuid:1>\";reg-id=1",
        "<sip:bob@192.0.2.2:5070>;+sip.instance=\"<\(RegistrationTests.instance)>\";reg-id=2",
    ])
    mutating func `others listed and ours not is a refusal`(contact: String) throws {
        wish { $0.register(at: $1) }
        try answer(200, ("Contact", contact))
        #expect(states == [.progress, .failed])
        #expect(reasons.last == .notListed)
        #expect(registration.binding == nil)
    }

    @Test mutating func `what comes with a binding is kept`() throws {
        change {
            $0.push = [.init("pn-provider", "apns")]
            $0.featureTags = ["+sip.pnsreg"]
        }
        wish { $0.register(at: $1) }
        try answer(
            200,
            ("Contact", Self.own + ";pub-gruu=\"sip:bob@example.com;gr=1\";temp-gruu=\"sip:t@example.com;gr\""),
            ("Service-Route", "<sip:a.example.com;lr>, <sip:b.example.com;lr>"),
            ("Flow-Timer", "120"),
            ("Require", "outbound"),
            ("Feature-Caps", "*;+sip.pns=\"APNS\";+sip.pnsreg=\"1200\""),
            ("Via", "SIP/2.0/UDP 10.0.0.1;branch=z9hG4bKa;received=192.0.2.7;rport=4711")
        )
        let binding = try #require(registration.binding)
        #expect(binding.serviceRoutes.map(\.bytes.text) == ["<sip:a.example.com;lr>", "<sip:b.example.com;lr>"])
        #expect(binding.publicGRUU?.bytes.text == "sip:bob@example.com;gr=1")
        #expect(binding.temporaryGRUU?.bytes.text == "sip:t@example.com;gr")
        #expect(binding.flowTimer == 120)
        #expect(binding.isOutbound)
        #expect(binding.isPushServed == true)
        #expect(binding.receivedHost == "192.0.2.7")
        #expect(binding.receivedPort == 4711)
        // The network wants 1200 s of the 3600, which is sooner than 85 %.
        #expect(try seconds() == 2400)
    }

    @Test mutating func `a network without the own provider does not serve push`() throws {
        change { $0.push = [.init("pn-provider", "apns")] }
        wish { $0.register(at: $1) }
        try answer(200, ("Contact", Self.own), ("Feature-Caps", "*;+sip.pns=\"fcm\""))
        #expect(registration.binding?.isPushServed == false)
    }

    @Test(arguments: [
        (3600, 3060.0...3240), (100, 70...70), (61, 31...31), (62, 32...32), (60, 30...30), (1, 0.5...0.5),
        (200, 170...170), (600, 510...540),
    ])
    mutating func `a refresh comes in time, and not too soon`(granted: Int, range: ClosedRange<Double>) throws {
        var delays: Set<Double> = []
        for seed in 0..<20 {
            registration = Registration(try Self.configuration, generator: SeededGenerator(seed: UInt64(seed)))
            wish { $0.register(at: $1) }
            try answer(200, ("Contact", Self.own + ";expires=\(granted)"))
            #expect(range.contains(try seconds()))
            delays.insert(try seconds())
        }
        #expect((delays.count > 1) == (range.lowerBound < range.upperBound))
        try passDeadline()
        #expect(states.suffix(3) == [.progress, .ok, .refreshing])
        #expect(reasons.last == .time)
        try answer(200, ("Contact", Self.own))
        #expect(states.last == .ok)
    }

    @Test mutating func `423 asks again with Min-Expires, once`() throws {
        wish { $0.register(at: $1) }
        try answer(423, ("Min-Expires", "7200"))
        #expect(sent.map { $0.first(.expires)?.text } == ["3600", "7200"])
        #expect(states == [.progress])
        try answer(423, ("Min-Expires", "9000"))
        #expect(sent.count == 2)
        #expect(reasons.last == .status(423))
        wish { $0.register(at: $1) }
        #expect(sent.last?.first(.expires)?.text == "7200")
    }

    @Test(arguments: ["", "x", "3600", "60"])
    mutating func `423 that asks for no more than was asked is a refusal`(least: String) throws {
        wish { $0.register(at: $1) }
        try answer(423, ("Min-Expires", least))
        #expect(sent.count == 1)
        #expect(states.last == .failed)
    }

    @Test(arguments: [401, 403, 404, 405, 407, 420, 488, 603, 604])
    mutating func `a refusal is told and not tried again for an hour, but by wish`(status: Int) throws {
        wish { $0.register(at: $1) }
        try answer(status, surroundings: Registration.Surroundings(hasNextTarget: true))
        #expect(states == [.progress, .failed])
        #expect(reasons.last == .status(status))
        #expect(try seconds() == 3600)
        try passDeadline()
        #expect(sent.count == 2)
        try answer(status)
        wish { $0.register(at: $1) }
        #expect(sent.count == 3)
    }

    @Test(arguments: [408, 480, 500, 503, 504, 580])
    mutating func `what may pass goes to the next target, then waits longer and longer`(status: Int) throws {
        wish { $0.register(at: $1) }
        try answer(status, surroundings: Registration.Surroundings(hasNextTarget: true))
        #expect(sent.count == 2)
        #expect(states == [.progress])
        for longest in [30.0, 60, 120, 240, 480, 960, 1800, 1800] {
            try answer(status)
            #expect(states.last == .failed)
            #expect((longest / 2...longest).contains(try seconds()))
            try passDeadline()
        }
        try answer(200, ("Contact", Self.own))
        wish { $0.refresh(at: $1) }
        try answer(status)
        #expect((15.0...30).contains(try seconds()))
    }

    @Test(arguments: [TransactionFailure.timeout, .unreachable])
    mutating func `a failed transaction is a temporary failure`(failure: TransactionFailure) throws {
        wish { $0.register(at: $1) }
        registration.fail(failure, number: 7, at: now)
        drain()
        #expect(states == [.progress])
        registration.fail(failure, number: 1, Registration.Surroundings(hasOtherFlow: true), at: now)
        drain()
        #expect(states == [.progress, .failed])
        #expect(reasons.last == .failure(failure))
        #expect((45.0...90).contains(try seconds()))
        #expect(!registration.isRunning)
    }

    @Test mutating func `Retry-After pushes the next attempt out, up to a day`() throws {
        wish { $0.register(at: $1) }
        try answer(503, ("Retry-After", "500"))
        #expect(try seconds() == 500)
        try passDeadline()
        try answer(503, ("Retry-After", "4000000000"))
        #expect(try seconds() == 86_400)
    }

    @Test mutating func `555 registers once without push, and tells it`() throws {
        change { $0.push = [.init("pn-provider", "apns"), .init("pn-prid", "00")] }
        wish { $0.register(at: $1) }
        try answer(555)
        #expect(sent.map { $0.first(.contact)?.text.contains("pn-") } == [true, false])
        #expect(warnings == [.pushNotServed])
        try answer(200, ("Contact", Self.own))
        #expect(states == [.progress, .ok])
        try passDeadline()
        #expect(sent.last?.first(.contact)?.text.contains("pn-") == false)
        try answer(555)
        #expect(sent.count == 3)
        #expect(reasons.last == .status(555))
        change { $0.push = [.init("pn-provider", "fcm")] }
        #expect(sent.last?.first(.contact)?.text.contains("pn-provider=fcm") == true)
    }

    @Test mutating func `unregistering takes the own Contact away, without its token`() throws {
        change { $0.push = [.init("pn-provider", "apns"), .init("PN-PRID", "00")] }
        wish { $0.register(at: $1) }
        try answer(200, ("Contact", Self.own))
        wish { $0.unregister(at: $1) }
        let message = try #require(sent.last)
        #expect(message.first(.expires)?.text == "0")
        #expect(
            message.values(of: .contact).map(\.text) == [
                "<sip:bob@192.0.2.2:5070;pn-provider=apns>;+sip.instance=\"<\(Self.instance)>\";reg-id=1;expires=0"
            ]
        )
        try answer(200)
        #expect(states == [.progress, .ok, .progress, .cleared])
        #expect(registration.deadline == nil)
        #expect(registration.binding == nil)
        wish { $0.refresh(at: $1) }
        wish { $0.unregister(at: $1) }
        #expect(sent.count == 2)
    }

    @Test mutating func `unregistering ends even when nobody answers, and needs no request when nothing is bound`()
        throws
    {
        wish { $0.unregister(at: $1) }
        #expect(sent.isEmpty)
        #expect(states == [.cleared])
        wish { $0.register(at: $1) }
        try answer(200, ("Contact", Self.own))
        wish { $0.unregister(at: $1) }
        registration.fail(.timeout, number: 2, at: now)
        drain()
        #expect(states.last == .cleared)
        #expect(reasons.last == .failure(.timeout))
        #expect(registration.deadline == nil)
    }

    @Test mutating func `the binding of a process before this one is taken away by a REGISTER of its own`() throws {
        wish { $0.unregister(isOfFormer: true, at: $1) }
        #expect(sent.last?.first(.expires)?.text == "0")
        try answer(200)
        #expect(states == [.progress, .cleared] && reasons.last == .accepted)
        #expect(registration.requestCount == 1)
    }

    @Test mutating func `the registrar's own words, and how many requests it took, are known`() throws {
        wish { $0.register(at: $1) }
        try answer(403)
        #expect(registration.phrase == "x" && registration.requestCount == 1)
        wish { $0.register(at: $1) }
        registration.fail(.timeout, number: 2, at: now)
        #expect(registration.phrase == nil && registration.requestCount == 2)
    }

    @Test mutating func `wishes during a request are done once after it`() throws {
        wish { $0.register(at: $1) }
        for _ in 0..<3 { wish { $0.refresh(at: $1) } }
        #expect(sent.count == 1)
        try answer(200, ("Contact", Self.own))
        #expect(sent.count == 2)
        #expect(states == [.progress, .ok, .refreshing])
        wish { $0.unregister(at: $1) }
        wish { $0.register(at: $1) }
        wish { $0.unregister(at: $1) }
        #expect(sent.count == 2)
        try answer(200, ("Contact", Self.own))
        #expect(sent.last?.first(.expires)?.text == "0")
        try answer(200)
        #expect(sent.count == 3)
        #expect(states.last == .cleared)
    }

    @Test mutating func `late, foreign and provisional responses are passed over`() throws {
        wish { $0.register(at: $1) }
        try answer(100)
        #expect(registration.isRunning)
        var old = try sent[0].response(status: 200, reason: "OK", tag: Bytes("t"))
        try old.set(.cSeq, to: CSeq(9, .register))
        registration.receive(old, at: now)
        drain()
        #expect(states == [.progress])
        try answer(200, ("Contact", Self.own))
        try answer(403)
        #expect(states == [.progress, .ok])
    }

    @Test mutating func `the request that answers a challenge has the next number`() throws {
        wish { $0.register(at: $1) }
        var again = sent[0]
        try registration.renumber(&again)
        #expect(try again.cSeq()?.number == 2)
        try answer(200, ("Contact", Self.own))
        #expect(states == [.progress])
        sent.append(again)
        try answer(200, ("Contact", Self.own))
        #expect(states == [.progress, .ok])
    }

    @Test mutating func `without network nothing is sent, with it at once`() throws {
        wish { $0.register(at: $1) }
        try answer(200, ("Contact", Self.own))
        wish { $0.refresh(at: $1) }
        wish { $0.setNetworkReachable(false, at: $1) }
        #expect(states.last == State.none)
        #expect(registration.deadline == nil)
        try answer(503)
        #expect(states.last == State.none)
        wish { $0.refresh(at: $1) }
        #expect(warnings == [.noNetwork])
        #expect(sent.count == 2)
        wish { $0.setNetworkReachable(true, at: $1) }
        #expect(sent.count == 3)
        #expect(reasons.last == .networkUp)
        try answer(200, ("Contact", Self.own))
        #expect(states.last == .ok)
    }

    @Test mutating func `a new contact is a new REGISTER, the same one is none`() throws {
        wish { $0.register(at: $1) }
        try answer(200, ("Contact", Self.own))
        change { _ in }
        #expect(sent.count == 1)
        let contact = try SIPURI("sip:bob@198.51.100.1:4711")
        change { $0.contact = contact }
        #expect(sent.count == 2)
        #expect(sent.last?.first(.contact)?.text.hasPrefix("<sip:bob@198.51.100.1:4711>") == true)
    }

    @Test mutating func `what cannot be written fails and is told`() throws {
        change { $0.featureTags = ["a\r\nVia: x"] }
        wish { $0.register(at: $1) }
        #expect(sent.isEmpty)
        #expect(states == [.progress, .failed])
        #expect(reasons.last == .notWritable)
    }

    @Test mutating func `a year of refreshes leaves nothing behind`() throws {
        wish { $0.register(at: $1) }
        while now < .zero + .seconds(365 * 86_400) {
            try answer(200, ("Contact", Self.own))
            #expect(registration.poll() == nil)
            (sent, states, reasons) = ([], [], [])
            try passDeadline()
            #expect(sent.count == 1)
        }
    }

    @Test mutating func `a registrar that asks for a password gets it, and from then on at once`() throws {
        let user = Credentials(userName: "bob", password: "zanzibar")
        var server = DigestServer(
            DigestServer.Configuration(realm: "example.com"),
            key: Array("sixteen bytes key".utf8)
        )
        var (client, attempt, generator) = (
            DigestClient(credentials: [user]), DigestAttempt(), SeededGenerator(seed: 1)
        )
        wish { $0.register(at: $1) }
        var request = sent[0]
        var refusal = try request.response(status: 401, reason: "x", tag: Bytes("t"))
        for value in server.challenges(at: now) { try refusal.append(.wwwAuthenticate, value) }
        let answer = try client.answer(refusal, to: &request, &attempt, using: &generator)
        #expect(answer == .retry)
        try registration.renumber(&request)
        let first = server.verify(request, at: now) { _ in user }
        #expect(first == .accepted(Bytes("bob")))
        sent.append(request)
        try self.answer(200, ("Contact", Self.own + ";expires=100"))
        try passDeadline()
        var next = try #require(sent.last)
        try client.authorize(&next, using: &generator)
        let second = server.verify(next, at: now) { _ in user }
        #expect(second == .accepted(Bytes("bob")))
        #expect(try next.cSeq()?.number == 3)
    }
}
