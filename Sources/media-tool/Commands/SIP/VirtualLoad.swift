import CallBasics
import SIP
import SIPTesting

/// Calls, or registrations, in virtual time: the same seed gives the same bytes.
struct VirtualLoad {
    let pace: LoadPace
    let seed: UInt64

    private static let step = Duration.milliseconds(1)

    /// Alice calls Bob, who answers each call at once.
    func calls() throws -> LoadFigures {
        var world = VirtualNetwork(seed: seed)
        world.keepsSent = false
        for name in ["alice", "bob"] { _ = try world.add(name) { $0.ringingPerSource = .max } }
        let bob = try SIPURI("sip:bob@\(world.nodes[1].address.host)")
        let sessions = world.nodes.map { SIPLoad.session(at: $0.address.host) }
        var figures = LoadFigures()
        var course = LoadCourse<CallHandle>(pace, start: world.now)
        while !course.isOver, !Interruption.hasCome {
            for _ in 0..<course.takeDue(at: world.now) {
                figures.attempted += 1
                let handle = try world.with(0) { agent, now in
                    try agent.call(bob, UserAgent.CallWishes(session: sessions[0]), at: now)
                }
                course.begin(handle, at: world.now)
            }
            for handle in course.takeTalkedOut(at: world.now) {
                world.with(0) { agent, now in agent.hangUp(handle, at: now) }
            }
            world.run(for: Self.step)
            for event in world.takeEvents(1) {
                guard case .incoming(let call, _) = event else { continue }
                try? world.with(1) { agent, now in try agent.answer(call, sessions[1], at: now) }
            }
            for event in world.takeEvents(0) { figures.note(event, &course, at: world.now) }
        }
        return finished(figures, world)
    }

    /// One agent registers accounts at a server, each with a password of its own (SHA-256).
    func registrations() throws -> LoadFigures {
        var world = VirtualNetwork(seed: seed)
        world.keepsSent = false
        let accounts = (1...pace.count).map { Credentials(userName: "alice\($0)", password: "secret\($0)") }
        var server = ServerConfiguration(domain: "example.test")
        server.users = [:]
        for account in accounts { server.users?[account.userName.text] = ServerUser(account) }
        let place = world.add(server)
        let registrar = try SIPURI("sip:\(world.servers[place].address.host)")
        _ = try world.add("alice")
        var figures = LoadFigures()
        var course = LoadCourse<AccountHandle>(pace, start: world.now)
        while !course.isOver, !Interruption.hasCome {
            for _ in 0..<course.takeDue(at: world.now) {
                let credentials = accounts[figures.attempted]
                figures.attempted += 1
                let address = try SIPURI("sip:\(credentials.userName.text)@example.test")
                var account = AccountConfiguration(identity: NameAddress(address))
                (account.registrar, account.credentials) = (registrar, [credentials])
                let made = account
                let handle = try world.with(0) { agent, now in
                    let handle = agent.addAccount(made)
                    try agent.register(handle, at: now)
                    return handle
                }
                course.begin(handle, at: world.now)
            }
            world.run(for: Self.step)
            for event in world.takeEvents(0) { _ = figures.noteRegistration(event, &course, at: world.now) }
            _ = world.takeEvents(ofServer: 0)
        }
        return finished(figures, world)
    }

    private func finished(_ figures: LoadFigures, _ world: VirtualNetwork) -> LoadFigures {
        var figures = figures
        figures.retransmissions = world.nodes[0].agent.repeatCount
        figures.elapsed = world.now - .zero
        return figures
    }
}
