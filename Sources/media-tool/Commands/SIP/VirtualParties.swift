import CallBasics
import CallCore
import SIP
import SIPTesting

/// Alice, a server that asks for her password, and perhaps Bob, in virtual time: the same seed gives the same bytes.
struct VirtualParties {
    private let world: World
    private let server: SIPURI
    private let alice: (index: Int, account: AccountHandle, address: SIPURI)
    private let bob: (index: Int, account: AccountHandle, address: SIPURI)?
    private var generator: SeededGenerator

    /// The network, which what tells of it asks, too.
    private final class World {
        var network: VirtualNetwork
        init(_ network: VirtualNetwork) { self.network = network }
    }

    private static let step = Duration.milliseconds(10)

    /// The parties of a domain: Alice, in Bob's domain where she has no address, and Bob, where he is needed.
    ///
    /// - Throws: `ToolFailure` when one has no user of the domain
    init(seed: UInt64, alice: String?, bob: String?) throws {
        var network = VirtualNetwork(seed: seed)
        let bobAddress = try bob.map { try SIPURI($0) }
        let domain = bobAddress?.host ?? "example.test"
        let aliceAddress = try SIPURI(alice ?? "sip:alice@\(domain)")
        var configuration = ServerConfiguration(domain: aliceAddress.host)
        configuration.users = [:]
        let addresses = [aliceAddress] + [bobAddress].compactMap(\.self)
        for (index, address) in addresses.enumerated() {
            guard let user = address.user, !user.isEmpty, address.host == configuration.domain else {
                throw ToolFailure(
                    "\(address) has no user of \(configuration.domain). Give one such as sip:bob@example.test."
                )
            }
            configuration.users?[user] = ServerUser(Credentials(userName: user, password: "secret\(index)"))
        }
        let place = network.add(configuration)
        server = try SIPURI("sip:\(network.servers[place].address.host);lr")
        var parties: [(index: Int, account: AccountHandle, address: SIPURI)] = []
        for (number, address) in addresses.enumerated() {
            let index = try network.add(address.user ?? "")
            var account = AccountConfiguration(identity: NameAddress(address))
            account.credentials = [Credentials(userName: address.user ?? "", password: "secret\(number)")]
            account.routes = [NameAddress(server)]
            let made = account
            parties.append((index, network.with(index) { agent, _ in agent.addAccount(made) }, address))
        }
        (self.alice, self.bob) = (parties[0], parties.count > 1 ? parties[1] : nil)
        world = World(network)
        generator = SeededGenerator(seed: seed)
    }

    // MARK: A registration

    /// Registers Alice, until the binding is taken away after `duration`, or once, and anew each `interval` seconds; tells it.
    ///
    /// - Throws: `ToolFailure` when she is refused
    func register(for duration: Duration?, each interval: Double?, _ teller: SIPTeller) async throws {
        let (world, alice) = (world, alice)
        var course = RegistrationCourse(
            of: "\(alice.address)",
            at: world.network.nodes[alice.index].address,
            teller,
            status: {
                let agent = world.network.nodes[alice.index].agent
                let (registration, seen) = (
                    agent.registration(of: alice.account), agent.publicAddress(of: alice.account)
                )
                return (registration, seen, world.network.now)
            },
            explain: { ToolFailure($0.text("the registrar")) },
            sinceStart: { world.network.now - .zero }
        )
        try world.network.with(alice.index) { agent, now in try agent.register(alice.account, at: now) }
        var nextRefresh = interval.map { MediaTime.zero + .seconds(fraction: $0) }
        var end = duration.map { MediaTime.zero + $0 }
        while !Interruption.hasCome {
            for event in world.network.takeEvents(alice.index) {
                switch await course.receive(event) {
                case .ok? where duration == nil: return
                case .cleared?: return
                case .failed(let failure, _)?: throw failure
                default: break
                }
            }
            if let time = nextRefresh, world.network.now >= time {
                nextRefresh = interval.map { time + .seconds(fraction: $0) }
                world.network.with(alice.index) { agent, now in agent.refresh(alice.account, at: now) }
            }
            if let time = end, world.network.now >= time {
                (end, nextRefresh) = (nil, nil)
                world.network.with(alice.index) { agent, now in agent.unregister(alice.account, at: now) }
            }
            world.network.run(for: Self.step)
        }
        throw ToolFailure("The registration was interrupted.")
    }

    // MARK: A text

    /// Sends a text from Alice to Bob, who sends the receipts that it asks for, and tells what becomes of it.
    ///
    /// - Throws: `ToolFailure` when it is refused, or a receipt is missing in the end
    mutating func send(
        _ text: String,
        isEnveloped: Bool,
        _ receipts: Set<TextReceipt.Kind>,
        for patience: Duration,
        _ common: CommonOptions
    ) async throws {
        guard let bob else { return }
        try registerBoth(bob)
        let plain = "text/plain;charset=utf-8"
        var id: String?
        var (type, body) = (plain, Array(text.utf8))
        if isEnveloped {
            let name = makeID()
            var letter = CPIMMessage.Letter(
                from: alice.address,
                to: bob.address,
                dateTime: time.internet,
                messageID: name,
                contentType: plain,
                body
            )
            letter.wantedReceipts = receipts.map(\.disposition).sorted()
            (id, type, body) = (name, CPIMMessage.type, try letter.body())
        }
        let errand = try world.network.with(alice.index) { [alice, type, body] agent, now in
            try agent.send(.message, to: bob.address, account: alice.account, type: type, body: body, at: now)
        }
        var (left, sentAt) = (receipts, MediaTime?.none)
        let end = world.network.now + patience
        while sentAt == nil || !left.isEmpty, !Interruption.hasCome {
            guard world.network.now < end else {
                throw ToolFailure("The text was not answered, or not read, in time. Wait longer with --wait.")
            }
            world.network.run(for: Self.step)
            for case .message(let message, _, _) in world.network.takeEvents(bob.index) {
                try acknowledge(message, bob)
            }
            for event in world.network.takeEvents(alice.index) {
                switch event {
                case .response(errand, let response, _) where response.statusCode ?? 0 >= 200:
                    let code = response.statusCode ?? 0
                    guard code < 300 else {
                        throw ToolFailure("\(bob.address) refused the text: \(code) \(response.reasonPhrase).")
                    }
                    common.tellSent(id, response)
                    sentAt = world.network.now
                case .failed(errand, let failure): throw ToolFailure(failure.text("\(bob.address)"))
                case .message(let message, _, _):
                    let from = "\(message.sender)"
                    guard case .receipt(let notification) = message.content, notification.messageID == id,
                        let kind = TextReceipt(notification, from: from)?.kind
                    else { continue }
                    let now = world.network.now
                    common.tellReceipt(kind, of: notification, from: from, after: now - (sentAt ?? now))
                    left.remove(kind)
                default: break
                }
            }
        }
    }

    private func registerBoth(_ bob: (index: Int, account: AccountHandle, address: SIPURI)) throws {
        for party in [alice, bob] {
            try world.network.with(party.index) { agent, now in try agent.register(party.account, at: now) }
        }
        world.network.run(for: .seconds(1))
    }

    private mutating func acknowledge(
        _ message: InstantMessage,
        _ bob: (index: Int, account: AccountHandle, address: SIPURI)
    ) throws {
        let time = time
        for letter in message.receipts(at: time, id: { makeID() }) {
            let (target, body) = (message.sender, try letter.body())
            _ = try world.network.with(bob.index) { agent, now in
                try agent.send(.message, to: target, account: bob.account, type: CPIMMessage.type, body: body, at: now)
            }
        }
    }

    /// The virtual time of day: midnight of the first of January 2026 is zero.
    private var time: UTCTime {
        UTCTime(unixMilliseconds: 1_767_225_600_000 + Int64((world.network.now - .zero).milliseconds))
    }

    /// 128 bits by the seed.
    private mutating func makeID() -> String {
        let words = [generator.next(), generator.next()] as [UInt64]
        return words.map { String($0, radix: 16) }.joined()
    }
}
