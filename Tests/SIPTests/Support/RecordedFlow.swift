import Foundation
import Testing

@testable import SIP

/// The messages of one call flow as its document prints them, in their order, each with who sends it to whom.
///
/// What the document leaves out or cuts off, such as an ACK or a 202, is added by who replays it.
struct RecordedFlow {
    struct Step {
        /// The file's name without its ending, such as "3.1-01"; that of what was added has a plus sign.
        let name: String
        let from: String
        let to: String
        var message: SIPMessage
    }

    /// Folders of flows below the corpora.
    static let folders = ["rfc3665", "rfc3428", "rfc3891", "rfc4538", "cc-transfer-06"]

    let folder: String
    let section: String
    private(set) var steps: [Step] = []
    /// Tags of others that are not those that are recorded.
    var tags: [(recorded: String, callID: String, live: String)] = []

    /// Throws what reading throws, and when a message has no sender.
    init(_ folder: String, _ section: String) throws {
        (self.folder, self.section) = (folder, section)
        let parties = try Self.parties(in: folder)
        for (name, bytes) in try Self.files(in: folder) where Self.section(of: name) == section {
            var message = try SIPMessage(datagram: bytes)
            if message.first(.cSeq) == nil, message.first(.via) == nil {
                // The body of the NOTIFY before it, which stands in a file of its own.
                steps[steps.count - 1].message.setBody(bytes)
                continue
            }
            try Self.mendNumber(of: &message)
            let pair = try #require(parties[name], "Nobody is said to send \(folder)/\(name).")
            steps.append(Step(name: name, from: pair.from, to: pair.to, message: message))
        }
        try #require(!steps.isEmpty, "There is no flow \(folder) \(section).")
    }

    /// The messages of a folder as they are printed, by the names of their files.
    static func files(in folder: String) throws -> [(name: String, bytes: [UInt8])] {
        try CorpusFiles.messages(in: "rfc/flows/\(folder)").map { (String($0.name.dropLast(4)), $0.bytes) }
    }

    static func section(of name: String) -> String { String(name.prefix { $0 != "-" }) }

    subscript(_ name: String) -> Step {
        get throws { try #require(steps.first { $0.name == name }, "There is no \(name) in \(folder) \(section).") }
    }

    // MARK: Who sends what to whom

    /// As labels.tsv says it, "F1 INVITE Alice -> Bob", or as stands here where it says nothing, or what is not so.
    static func parties(in folder: String) throws -> [String: (from: String, to: String)] {
        var parties: [String: (from: String, to: String)] = [:]
        for name in try files(in: folder).map(\.name) { parties[name] = unlabelled["\(folder)/\(name)"] }
        guard let corpora = CorpusFiles.corpora else { return parties }
        let table = corpora.appendingPathComponent("rfc/flows/\(folder)/labels.tsv")
        guard FileManager.default.fileExists(atPath: table.path) else { return parties }
        for row in try String(contentsOf: table, encoding: .utf8).split(separator: "\n") {
            let columns = row.components(separatedBy: "\t")
            let name = String(columns[0].dropLast(4))
            let sides = columns[1].components(separatedBy: " -> ")
            guard parties[name] == nil, sides.count == 2 else { continue }
            let from = names.filter { sides[0].hasSuffix(" " + $0) }.max { $0.count < $1.count }
            parties[name] = from.map { ($0, sides[1]) }
        }
        return parties
    }

    private static let names = [
        "Alice", "Bob", "SIP Server", "Redirect Server", "Proxy 1", "Proxy 2", "Proxy 3", "Transferor", "Transferee",
        "Transfer Target",
    ]

    private static let unlabelled: [String: (from: String, to: String)] = [
        "rfc3665/3.6-02": ("Redirect Server", "Alice"), "rfc3665/3.6-10": ("Proxy 3", "Alice"),
        // The label names the transferee.
        "cc-transfer-06/6.3-04": ("Transfer Target", "Transferor"),
        "rfc3428/3428-message": ("User 1", "User 2"),
        "rfc3891/1-01": ("Bob", "Parking Place"), "rfc3891/1-02": ("Parking Place", "Bob"),
        "rfc3891/7.1-01": ("Alice", "Bob"), "rfc3891/7.1-02": ("Bob", "Alice"),
        "rfc3891/7.1-03": ("Alice", "Bob's Lab"), "rfc3891/7.1-04": ("Alice", "Bob"),
        "rfc3891/7.1-05": ("Bob", "Alice"), "rfc3891/7.1-06": ("Bob", "Alice"),
        "rfc4538/10-01": ("A", "B"), "rfc4538/10-02": ("B", "A"),
    ]

    // MARK: What is added

    /// Adds an answer that the document does not print, behind the step that it answers or another one.
    mutating func addAnswer(
        _ status: Int,
        to name: String,
        tag: String = "added",
        after place: String? = nil,
        _ headers: (String, String)...
    ) throws {
        let step = try self[name]
        var response = try step.message.response(
            status: status,
            reason: SIPStatus.phrase(status),
            tag: Bytes(tag)
        )
        for header in headers { try response.append(named: header.0, header.1) }
        let made = Step(name: "\(name)+\(status)", from: step.to, to: step.from, message: response)
        try insert(made, after: place ?? name)
    }

    /// Adds a request that the document does not print, of one of the two whose dialog a step is of.
    ///
    /// Without a number it has that of the step, as an ACK has; without a URI, that of the step's Contact.
    mutating func addRequest(
        _ method: SIPMethod,
        named ownName: String? = nil,
        like name: String,
        from sender: String,
        _ uri: String? = nil,
        number: UInt32? = nil,
        after place: String? = nil,
        _ headers: (String, String)...
    ) throws {
        let step = try self[name]
        let known = step.message
        let target = try uri.map { try SIPURI($0) } ?? #require(known.contacts().first).uri
        var request = SIPMessage(method, to: target)
        let caller = known.method != nil ? step.from : step.to
        try request.append(.from, Bytes(known.first(sender == caller ? .from : .to) ?? []))
        try request.append(.to, Bytes(known.first(sender == caller ? .to : .from) ?? []))
        try request.append(.callID, Bytes(known.callID ?? []))
        try request.append(.cSeq, CSeq(number ?? known.cSeq()?.number ?? 1, method))
        for header in headers { try request.append(named: header.0, header.1) }
        let receiver = sender == step.from ? step.to : step.from
        let made = Step(name: ownName ?? "\(name)+\(method.name)", from: sender, to: receiver, message: request)
        try insert(made, after: place ?? name)
    }

    /// Adds a message that belongs to no other.
    mutating func add(_ name: String, from: String, to: String, after place: String, _ lines: String...) throws {
        let text = lines.map { $0 + "\r\n" }.joined() + "\r\n"
        let made = Step(name: name, from: from, to: to, message: try SIPMessage(datagram: Array(text.utf8)))
        try insert(made, after: place)
    }

    /// Lets another flow come before this one.
    mutating func prepend(_ others: some Sequence<Step>) { steps = others + steps }

    /// Gives a sender another address.
    mutating func rename(_ address: String, _ other: String) throws {
        let (former, next) = (try SIPURI(address), try SIPURI(other))
        for index in steps.indices {
            for name in [HeaderName.from, .to] {
                guard var value: NameAddress = try steps[index].message.value(name), value.uri == former else {
                    continue
                }
                value.uri = next
                try steps[index].message.set(name, to: value)
            }
        }
    }

    private mutating func insert(_ step: Step, after place: String) throws {
        let index = try #require(steps.firstIndex { $0.name == place }, "There is no step \(place).")
        steps.insert(step, at: index + 1)
    }

    /// Gives a step what its document cuts off: From, To, Call-ID and CSeq of another one, and headers.
    mutating func complete(_ name: String, like other: String? = nil, _ headers: (String, String)...) throws {
        let index = try #require(steps.firstIndex { $0.name == name }, "There is no step \(name).")
        for header in headers { try steps[index].message.append(named: header.0, header.1) }
        if let other {
            let known = try self[other].message
            for header in [HeaderName.to, .from, .callID, .cSeq] where steps[index].message.first(header) == nil {
                try steps[index].message.append(header, known.first(header) ?? [])
            }
            if steps[index].message.method == .invite, var to = try steps[index].message.to() {
                to.tag = nil
                try steps[index].message.set(.to, to: to)
            }
        }
        try Self.mendNumber(of: &steps[index].message)
    }

    mutating func setBody(of name: String, _ body: [UInt8]) throws {
        let index = try #require(steps.firstIndex { $0.name == name }, "There is no step \(name).")
        steps[index].message.setBody(body)
    }

    /// A request names its method in CSeq; those of the transfer draft do not always.
    private static func mendNumber(of message: inout SIPMessage) throws {
        guard let method = message.method, let number = try message.cSeq()?.number else { return }
        try message.set(.cSeq, to: CSeq(number, method))
    }
}
