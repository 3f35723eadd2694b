internal import CallBasics
import MediaEngine
import SIP

/// How messages that are hard to read are answered, beside what an RFC asks for.
struct TortureScore {
    /// What is asked.
    enum Subject {
        /// The reader of messages alone: methods and types of body are not looked at.
        case parser
        /// A user agent, all that it is: what it sends.
        case stack
        /// A peer elsewhere, of which nothing is known but its final answers.
        case peer
    }

    /// One line of the table of expectations.
    struct Expectation: Hashable {
        var file: String
        var section: String
        /// "accept", "accept-first", "drop", a status code, or two of them with "-or-".
        var expected: String

        /// Whether there is one right answer only.
        var isExact: Bool { Int(expected) != nil }

        /// Whether a final answer with that code fits; 0 is a message that was taken, nil one without an answer.
        func isMet(by answer: Int?, isSilent: Bool, subject: Subject) -> Bool {
            if isSilent { return answer == nil || answer == 0 }
            if subject == .peer { return isMet(byPeer: answer) }
            return TortureScore.parts(of: expected).contains { part in
                switch part {
                case "accept", "accept-first", "lenient": answer == 0
                case "405", "406", "415", "420", "501": answer == Int(part) || subject == .parser && answer == 0
                case _ where TortureScore.silences.contains(part): answer == nil
                default: answer == Int(part)
                }
            }
        }

        /// Whether an answer of a peer fits: whoever takes a message answers what its user may choose, and nothing that says
        /// that it could not be read.
        private func isMet(byPeer answer: Int?) -> Bool {
            let parts = TortureScore.parts(of: expected)
            guard let answer else { return parts.contains(where: TortureScore.silences.contains) }
            return parts.contains { part in
                switch part {
                case "accept", "accept-first", "lenient": ![400, 414, 416, 505, 513].contains(answer)
                default: answer == Int(part)
                }
            }
        }
    }

    /// What became of one file.
    struct Row {
        var expectation: Expectation
        var answer: Int?
        var isMet: Bool
    }

    private(set) var rows: [Row] = []
    /// Messages after which a peer answered nothing any more.
    private(set) var crashCount = 0
    /// Messages that were made from the files by changing one byte.
    private(set) var mutationCount = 0
    /// The longest time that a message took.
    private(set) var slowest = Duration.zero

    private let subject: Subject
    private var generator: SeededGenerator

    init(_ subject: Subject, seed: UInt64) {
        self.subject = subject
        generator = SeededGenerator(seed: seed)
    }

    /// Takes what a peer answered to the file that an expectation is about.
    mutating func add(_ expectation: Expectation, _ bytes: [UInt8], _ answer: TortureProbe.Event) {
        let isMet = expectation.isMet(by: answer.status, isSilent: Self.isSilent(bytes), subject: .peer)
        rows.append(Row(expectation: expectation, answer: answer.status, isMet: isMet && answer.isAlive))
        note(answer)
    }

    /// Takes that a peer was sent a message with one byte changed.
    mutating func addMutation(_ answer: TortureProbe.Event) {
        mutationCount += 1
        note(answer)
    }

    private mutating func note(_ answer: TortureProbe.Event) {
        slowest = max(slowest, answer.delay)
        if !answer.isAlive { crashCount += 1 }
    }

    /// The message with one byte changed.
    mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        guard !bytes.isEmpty else { return bytes }
        var mutated = bytes
        let number = generator.next()
        mutated[Int(number % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: number >> 56)
        return mutated
    }

    /// Takes the file that an expectation is about, and so many messages that differ from it in one byte.
    mutating func add(_ expectation: Expectation, _ bytes: [UInt8], mutations: Int) {
        let answer = timed(bytes)
        let isMet = expectation.isMet(by: answer, isSilent: Self.isSilent(bytes), subject: subject)
        rows.append(Row(expectation: expectation, answer: answer, isMet: isMet))
        guard !bytes.isEmpty else { return }
        for _ in 0..<mutations {
            _ = timed(mutated(bytes))
            mutationCount += 1
        }
    }

    /// Whether nothing answers such a message: an ACK or a response.
    private static func isSilent(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: Array("SIP/2.0 ".utf8)) || bytes.starts(with: Array("ACK ".utf8))
    }

    private mutating func timed(_ bytes: [UInt8]) -> Int? {
        let start = MonotonicClock.current
        defer { slowest = max(slowest, MonotonicClock.current - start) }
        return subject == .parser ? Self.parserAnswer(bytes) : Self.stackAnswer(bytes)
    }

    private static func parserAnswer(_ bytes: [UInt8]) -> Int? {
        do throws(SIPError) {
            let message = try SIPMessage(datagram: bytes)
            do throws(SIPError) {
                _ = try message.validated()
                return 0
            } catch {
                return message.isAnswerable ? error.code.statusCode : nil
            }
        } catch {
            return nil
        }
    }

    /// A phone that a REGISTER does not surprise, as some messages are one.
    private static let agent: UserAgent? = {
        guard let uri = try? SIPURI("sip:user@192.0.2.2") else { return nil }
        var configuration = AgentConfiguration(identity: NameAddress(uri))
        configuration.capabilities.methods.append(.register)
        var agent = UserAgent(configuration, seed: 1)
        agent.setLocalAddresses([local], of: .udp, at: .zero)
        return agent
    }()
    private static let local = SocketAddress(ipv4: 0xC000_0202, port: 5060)
    private static let remote = SocketAddress(ipv4: 0xC000_0201, port: 5060)

    /// A call that rings is taken, and so is what is answered for its sense: that it is done, or of no call that is known.
    private static func stackAnswer(_ bytes: [UInt8]) -> Int? {
        guard var agent else { return nil }
        agent.handle(.datagram(bytes, local: local, remote: remote), at: .zero)
        var answer: Int?
        while let output = agent.poll() {
            switch output {
            case .event(.incoming): return 0
            case .send(let sent, _):
                let status = (try? SIPMessage(datagram: sent))?.statusCode
                if status != 100 { answer = status == 200 || status == 481 ? 0 : status }
            default: break
            }
        }
        return answer
    }

    // MARK: The table of expectations

    /// The lines of a table with the columns name, section and expect, below one that names them.
    ///
    /// - Throws: `ToolFailure` that names the line.
    static func expectations(_ text: String) throws -> [Expectation] {
        let lines = text.split(whereSeparator: \.isNewline).dropFirst()
        return try lines.enumerated().map { index, line in
            let columns = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard columns.count >= 3, !columns[0].isEmpty, !columns[0].contains("/") else {
                let what = "Line \(index + 2) of the table has no name, section and expectation."
                throw ToolFailure(what + " Separate them by tabs.")
            }
            guard parts(of: columns[2]).allSatisfy(isKnown) else {
                let known = "accept, accept-first, drop, a status code, 400-or-lenient or the like"
                throw ToolFailure("Line \(index + 2) of the table expects '\(columns[2].printable)'. Write \(known).")
            }
            return Expectation(file: columns[0], section: columns[1], expected: columns[2])
        }
    }

    private static func parts(of expected: String) -> [Substring] {
        expected.split(separator: "-or-", omittingEmptySubsequences: false)
    }

    private static func isKnown(_ part: Substring) -> Bool {
        ["accept", "accept-first", "lenient"].contains(part) || silences.contains(part)
            || Int(part).map { 300...699 ~= $0 } == true
    }

    /// What the RFCs call it that a message gets no answer.
    private static let silences: Set<Substring> = ["drop", "discard", "ignore"]

    // MARK: What is told

    /// Whether every answer fits.
    var isMet: Bool { rows.allSatisfy(\.isMet) && crashCount == 0 }

    var json: JSONValue {
        let exact = rows.filter(\.expectation.isExact)
        return [
            "files": .integer(rows.count), "ok": .integer(rows.count(where: \.isMet)),
            "exact": ["asked": .integer(exact.count), "ok": .integer(exact.count(where: \.isMet))],
            "lenient": .integer(rows.count { $0.expectation.expected.contains("-or-") && $0.answer == 0 }),
            "noAnswer": .integer(rows.count { $0.answer == nil }),
            "crashed": .integer(crashCount),
            "mutations": .integer(mutationCount),
            "slowestMs": .milliseconds(slowest),
            "failed": JSONValue(rows.filter { !$0.isMet }.map(\.expectation.file)),
        ]
    }

    var text: String {
        let lines = rows.map { row in
            [
                row.expectation.file.printable, row.expectation.section.printable, row.expectation.expected,
                row.answer.map { $0 == 0 ? "taken" : "\($0)" } ?? "no answer", row.isMet ? "ok" : "FAILED",
            ]
        }
        let met = rows.count(where: \.isMet)
        let changed = mutationCount > 0 ? ", \(mutationCount) with one byte changed" : ""
        let crashed = crashCount > 0 ? ", \(crashCount) times nothing came any more" : ""
        return Table.text([["FILE", "SECTION", "EXPECTED", "GOT", ""]] + lines)
            + "\(met) of \(English.count(rows.count, "message")) as expected\(changed)\(crashed), none took longer than "
            + "\((slowest.milliseconds * 100).rounded() / 100) ms\n"
    }
}
