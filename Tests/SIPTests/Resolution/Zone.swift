import CallBasics
import Testing

@testable import SIP

/// A server of names: what it knows, and what it was asked.
struct Zone {
    var answers: [DNSQuestion: DNSAnswer] = [:]
    private(set) var asked: [String] = []

    /// Records as a zone file has them: owner, TTL, type, data; text in quotes without blanks.
    init(_ lines: String...) throws {
        var records: [DNSQuestion: [DNSRecord]] = [:]
        for line in lines {
            let words = line.split(separator: " ").map { $0.filter { $0 != "\"" } }
            let owner = try #require(DNSName(words[0]))
            let seconds = try #require(UInt32(words[1]))
            let (kind, value) = try Self.value(words[2], Array(words[3...]))
            records[DNSQuestion(owner, kind), default: []].append(DNSRecord(owner, seconds: seconds, value))
        }
        answers = records.mapValues { .records($0) }
    }

    private static func value(_ type: String, _ words: [String]) throws -> (DNSQuestion.Kind, DNSRecord.Value) {
        func name() throws -> DNSName { try #require(DNSName(words.last ?? "")) }
        func number(_ index: Int) throws -> UInt16 { try #require(UInt16(words[index])) }
        switch type {
        case "SRV":
            let record = ServiceRecord(
                priority: try number(0),
                weight: try number(1),
                port: try number(2),
                target: try name()
            )
            return (.srv, .service(record))
        case "NAPTR":
            let record = PointerRecord(
                order: try number(0),
                preference: try number(1),
                flags: words[2],
                service: words[3],
                replacement: try name()
            )
            return (.naptr, .pointer(record))
        default:
            return (type == "A" ? .a : .aaaa, .address(try #require(SocketAddress(host: words[0], port: 0))))
        }
    }

    /// The answer to a question: a name without records of any kind is not there.
    mutating func answer(_ question: DNSQuestion) -> DNSAnswer {
        asked.append("\(question.name) \(question.kind)")
        if let answer = answers[question] { return answer }
        return answers.keys.contains { $0.name == question.name } ? .noData(nil) : .noSuchName(nil)
    }

    mutating func forgetQuestions() { asked = [] }
}

extension Resolver {
    /// Answers from `zone` until nothing is asked, and gives what else there is.
    mutating func run(_ zone: inout Zone, at now: MediaTime = .zero) -> [Output] {
        var outputs: [Output] = []
        while let output = poll() {
            if case .ask(let question) = output {
                receive(zone.answer(question), to: question, at: now)
            } else {
                outputs.append(output)
            }
        }
        return outputs
    }

    /// What a URI leads to: the targets as text in their order, or the fault.
    mutating func targets(
        _ uri: String,
        _ wishes: ResolutionWishes,
        _ zone: inout Zone,
        at now: MediaTime = .zero
    ) throws -> [String] {
        _ = resolve(try SIPURI(uri), wishes, at: now)
        switch run(&zone, at: now).first {
        case .resolved(_, let resolution): return resolution.targets.map(\.text)
        case .failed(_, let error): return ["\(error.code)"]
        case .ask, nil: return []
        }
    }

    mutating func targets(_ uri: String, _ zone: inout Zone) throws -> [String] {
        try targets(uri, ResolutionWishes(), &zone)
    }
}

extension Target {
    var text: String { "\(transport) \(address)" + (tlsName.map { " \($0)" } ?? "") }
}
