internal import Foundation
import SIP

/// The files of `sip server`.
enum ServerFiles {
    private static let mostBytes = 1 << 24

    private struct User: Decodable {
        var password: String?
    }

    private struct Rule: Decodable {
        var method: String?
        var to: String?
        var `do`: String
        var ms: Int?
        var code: Int?
        var times: Int?
    }

    /// The users of a file with one JSON object.
    ///
    /// - Throws: `ToolFailure` when it cannot be read, or is something else.
    static func users(at path: String) throws -> [String: ServerUser] {
        let bytes = try TextFile.read(InputPath.path(of: path), limit: mostBytes)
        guard let users = try? JSONDecoder().decode([String: User].self, from: Data(bytes)) else {
            throw ToolFailure("\(path) lists no users. Write {\"alice\": {\"password\": \"...\"}}.")
        }
        return users.reduce(into: [:]) { users, entry in
            users[entry.key] = ServerUser(
                entry.value.password.map { Credentials(userName: entry.key, password: $0) }
            )
        }
    }

    /// The rules of a file with a JSON object on each line.
    ///
    /// - Throws: `ToolFailure` that names the line.
    static func script(at path: String) throws -> [ServerRule] {
        let bytes = try TextFile.read(InputPath.path(of: path), limit: mostBytes)
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return try lines.enumerated().compactMap { number, line in
            guard !line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) else { return nil }
            guard let rule = try? JSONDecoder().decode(Rule.self, from: Data(line)), let made = serverRule(rule) else {
                throw ToolFailure(
                    "\(path), line \(number + 1), is no rule. Write {\"method\": \"INVITE\", \"do\": \"delay\", \"ms\": 500}."
                )
            }
            return made
        }
    }

    /// Nil when something that it needs is missing or out of range.
    private static func serverRule(_ rule: Rule) -> ServerRule? {
        let action: ServerRule.Action
        switch rule.do {
        case "delay":
            guard let ms = rule.ms, 0...600_000 ~= ms else { return nil }
            action = .delay(.milliseconds(ms))
        case "drop": action = .drop
        case "duplicate": action = .duplicate
        case "answer":
            guard let code = rule.code, 200...699 ~= code else { return nil }
            action = .answer(code)
        case "cut": action = .cut
        default: return nil
        }
        let method = rule.method.map { SIPMethod($0) }
        if let method, method == nil { return nil }
        guard rule.times.map({ $0 >= 0 }) ?? true else { return nil }
        return ServerRule(action, method: method ?? nil, user: rule.to, times: rule.times)
    }
}
