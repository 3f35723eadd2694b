import CallBasics
import Foundation
import SIPTesting
import Testing

@testable import SIP

/// The call flows of RFC 3665, 3428, 3891, 4538 and of the draft of RFC 5589, each with our agent or server as each of their parties.
///
/// Which flows, in which roles, what differs lawfully, and who cannot be played: `CallFlowTable`.
@Suite(.enabled(if: CorpusFiles.areThere, "the corpora are not on this machine"))
struct FlowReplayTests {
    @Test(arguments: CallFlowTable.rows)
    func `our party sends and takes what the flow shows, and nothing is left`(row: CallFlowTable.Row) throws {
        let before = try row.before.map { section in
            try #require(
                CallFlowTable.rows.first { $0.section == section && $0.party == row.party && $0.folder == row.folder }
            )
        }
        let rows = [before, row].compactMap { $0 }
        if row.agent != nil { try replay(asAgent: rows) } else { try replay(asServer: rows) }
    }

    private func replay(asAgent rows: [CallFlowTable.Row]) throws {
        var replay: FlowReplay<UserAgent>?
        var user = FlowUser(identity: "", credentials: Credentials(userName: "", password: ""))
        for row in rows {
            let agent = try #require(row.agent)
            let flow = try RecordedFlow.whole(row.folder, row.section, for: row.party)
            if replay == nil {
                user.identity = agent.identity
                user.credentials = credentials(of: row.party)
                replay = try FlowReplay(agent: row.party, in: flow, row.transports, user)
            } else {
                replay?.begin(flow)
            }
            try replay?.run(&user, agent.verbs, but: row.differences)
            #expect(replay?.events.compactMap(\.word) == row.told)
            #expect(replay?.repeatCount == row.repeatCount)
            replay?.events = []
        }
        replay?.expectEmpty(user)
    }

    private func replay(asServer rows: [CallFlowTable.Row]) throws {
        var replay: FlowReplay<SIPServer>?
        for row in rows {
            let server = try #require(row.server)
            let flow = try RecordedFlow.whole(row.folder, row.section, for: row.party)
            if replay == nil {
                let known = credentials(of: server.asksBob ? "Bob" : "Alice")
                replay = try FlowReplay(server: server, as: row.party, in: flow, row.transports, known)
            } else {
                replay?.begin(flow)
            }
            try replay?.run(but: row.differences)
            #expect(replay?.events.compactMap(\.word) == row.told)
            replay?.events = []
        }
        replay?.expectEmpty()
    }

    @Test func `an ACK whose name leads nowhere goes the way that its INVITE went`() throws {
        let row = try #require(CallFlowTable.rows.first { $0.name == "rfc3665 3.7 as Alice" })
        let agent = try #require(row.agent)
        var user = FlowUser(identity: agent.identity, credentials: credentials(of: row.party))
        let flow = try RecordedFlow.whole(row.folder, row.section, for: row.party)
        var replay = try FlowReplay(agent: row.party, in: flow, row.transports, user)
        replay.places.hosts["client.biloxi.example.com"] = nil
        try replay.run(&user, agent.verbs, but: ["3.7-08": ["way": "the answer came through the proxy"]])
        #expect(replay.events.compactMap(\.word) == row.told)
        replay.expectEmpty(user)
    }

    private func credentials(of party: String) -> Credentials {
        Credentials(userName: party == "Bob" ? "bob" : "alice", password: "zanzibar")
    }

    @Test func `each flow of the corpora is in the table, and each message is both sent and taken by one of ours`()
        throws
    {
        let played = Set(CallFlowTable.rows.map(\.name))
        var parties: Set<String> = []
        for folder in RecordedFlow.folders {
            for section in Set(try RecordedFlow.files(in: folder).map { RecordedFlow.section(of: $0.name) }) {
                for step in try RecordedFlow(folder, section).steps {
                    parties.formUnion(["\(folder) \(section) as \(step.from)", "\(folder) \(section) as \(step.to)"])
                }
            }
        }
        #expect(parties.subtracting(played) == Set(CallFlowTable.notPlayed.keys))
        #expect(played.isDisjoint(with: CallFlowTable.notPlayed.keys))
        let folders = try CorpusFiles.messages(in: "rfc/flows").map { $0.name.prefix { $0 != "/" } }
        #expect(Set(folders) == Set(RecordedFlow.folders.map { $0[...] }))
    }

    /// What is written has each value on a line of its own, nothing folded, and the length at the end.
    @Test(arguments: RecordedFlow.folders)
    func `each message is written as it is printed`(folder: String) throws {
        let files = try RecordedFlow.files(in: folder)
        #expect(!files.isEmpty)
        for (name, bytes) in files {
            let text = String(decoding: bytes, as: UTF8.self)
            let end = try #require(text.range(of: "\r\n\r\n"), "\(name)")
            let lines = text[..<end.lowerBound].replacing("\r\n ", with: " ").split(separator: "\r\n")
            let body = text[end.upperBound...]
            let written = lines.filter { !$0.hasPrefix("Content-Length:") }.flatMap { line in
                guard line.hasPrefix("Route:") || line.hasPrefix("Record-Route:") else { return [String(line)] }
                let header = line.prefix { $0 != ":" }
                return line.dropFirst(header.count + 1).split(separator: ",").map { value in
                    "\(header): \(value.trimmingPrefix { $0 == " " })"
                }
            }
            let whole = (written + ["Content-Length: \(body.utf8.count)", "", ""]).joined(separator: "\r\n") + body
            #expect(String(decoding: try SIPMessage(datagram: bytes).bytes, as: UTF8.self) == whole, "\(name)")
        }
    }
}

extension SIP.ServerEvent {
    fileprivate var word: String? {
        guard case .binding(let user, let contact, let seconds, _) = self else { return "\(self)" }
        return "\(user) at \(contact) for \(seconds)"
    }
}
