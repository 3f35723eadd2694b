import AgentSockets
import ArgumentParser
import CallBasics

/// Where the agents of a command are found: they are dialled, or they dial in.
struct AgentConnector: Sendable {
    private let options: AgentOptions
    /// Nil where they are dialled.
    private let reception: AgentReception?

    /// Begins to listen, where agents dial in; says so when what is said can be listened to.
    ///
    /// - Throws: `AgentError` when the address is not to be had
    init(_ options: AgentOptions) async throws {
        self.options = options
        if let place = options.agentsAt?.address {
            reception = try await AgentReception.open(
                at: place.host,
                port: place.port,
                options.receptionOptions
            )
        } else {
            reception = nil
        }
        guard try options.isInTheClear else { return }
        let remedy = reception == nil ? "Take wss://" : "Give --agents-cert and --agents-key"
        StandardError.write("Note: what is said goes to \(address) in the clear. \(remedy) where others can listen.\n")
    }

    /// Where the agent is, without a path, which may hold a key; or the own address.
    var address: String { reception?.address ?? options.place ?? "" }

    /// Dials an agent, or awaits one, which is told of by a line.
    ///
    /// - Parameters:
    ///   - call: What it is told; nil when it is told later.
    ///   - callID: The call that it is for, where there are more than one.
    ///   - limit: How long it has to dial in.
    ///   - teller: What tells where it may.
    /// - Returns: The line to it.
    /// - Throws: `AgentError` when it is not there, `ToolFailure` when the token cannot be read
    func line(
        _ call: AgentCall? = nil,
        in callID: String? = nil,
        within limit: Duration,
        _ teller: SIPTeller
    ) async throws -> AgentLine {
        guard let reception else { return try await options.dial(call) }
        return try await reception.line(call, within: limit) { path in
            let address = reception.address + path
            let members: [(String, JSONValue)] = [("address", .string(address)), ("path", .string(path))]
            let call: [(String, JSONValue)] = callID.map { [("callID", .string($0))] } ?? []
            teller.tell(
                "agentAwaited",
                call + members,
                text: "An agent may dial \(address) within \(Int(limit / .seconds(1))) s."
            )
        }
    }

    /// Listens no more.
    func close() async { await reception?.close() }
}
