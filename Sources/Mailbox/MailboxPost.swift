internal import CallBasics
import Foundation

/// Something that a mailbox will hold, with the script of how it is sent.
///
/// Shape: as a line of JSON the members of `MailboxContent`, and `"delayMs"`, `"duplicates"` and `"disconnectAfter"`
/// where they differ from 0, 0 and false.
package struct MailboxPost: Sendable, Hashable {
    /// What is held.
    package let content: MailboxContent
    /// How long after it was posted it is there to be sent.
    package let delay: Duration
    /// How many more times it is sent each time it is sent.
    package let duplicates: Int
    /// Whether the server drops the connection after it has sent it for the first time.
    package let disconnectsAfter: Bool

    /// A post that is sent by this script.
    ///
    /// - Throws: `MailboxError` with code `invalidPost` when a value is out of range or all is too long for a line.
    package init(
        _ content: MailboxContent,
        delay: Duration = .zero,
        duplicates: Int = 0,
        disconnectsAfter: Bool = false
    ) throws(MailboxError) {
        guard !content.key.isEmpty else {
            throw MailboxError(.invalidPost, "A post without callID and room cannot be acknowledged. Give one.")
        }
        guard (.zero...Self.longestDelay).contains(delay) else {
            throw MailboxError(.invalidPost, "A delay of \(delay) is out of range. Give 0 to 86400000 ms.")
        }
        guard (0...Self.mostDuplicates).contains(duplicates) else {
            let message = "\(duplicates) duplicates are out of range. Give 0 to \(Self.mostDuplicates)."
            throw MailboxError(.invalidPost, message)
        }
        let byteCount = MailboxResponse.post(content).line.count
        guard byteCount <= MailboxLine.mostBytes else {
            let message = "The post \(content.key) has \(byteCount) bytes. A line may have \(MailboxLine.mostBytes)."
            throw MailboxError(.invalidPost, message)
        }
        self.content = content
        self.delay = delay
        self.duplicates = duplicates
        self.disconnectsAfter = disconnectsAfter
    }

    /// Reads the posts of a file, one on each line; empty lines are left out.
    ///
    /// - Throws: `MailboxError` with code `invalidPost`, which names the line.
    package static func parse(lines text: String) throws(MailboxError) -> [MailboxPost] {
        var posts: [MailboxPost] = []
        var lineOfKey: [String: Int] = [:]
        // "\r\n" is one character.
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated()
        where !line.allSatisfy(\.isWhitespace) {
            let number = index + 1
            let post: MailboxPost
            do {
                post = try MailboxPost(parsing: line)
            } catch {
                throw MailboxError(.invalidPost, "Line \(number): \(error.message)")
            }
            if let first = lineOfKey.updateValue(number, forKey: post.content.key) {
                let message =
                    "Line \(number): \(post.content.key) is on line \(first) already. Give each line a key of its own."
                throw MailboxError(.invalidPost, message)
            }
            posts.append(post)
        }
        return posts
    }

    private init(parsing line: Substring) throws(MailboxError) {
        let content: MailboxContent
        let script: Script
        do {
            content = try JSONDecoder().decode(MailboxContent.self, from: Data(line.utf8))
            script = try JSONDecoder().decode(Script.self, from: Data(line.utf8))
        } catch {
            let remedy = #"Write {"callID", "from", "text", "delayMs"}, or {"room", "from"} for an invitation."#
            throw MailboxError(.invalidPost, "this is no message: \(Self.reason(error)). \(remedy)")
        }
        guard script.unknown.isEmpty else {
            let known = (MailboxContent.CodingKeys.allCases.map(\.rawValue) + Script.known).joined(separator: ", ")
            let names = script.unknown.sorted().joined(separator: ", ")
            throw MailboxError(.invalidPost, "there is no member \(names). The members are \(known).")
        }
        try self.init(
            content,
            delay: .milliseconds(script.delay),
            duplicates: script.duplicates,
            disconnectsAfter: script.disconnectsAfter
        )
    }

    /// What the decoder found wrong, in a few words.
    private static func reason(_ error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, _): "it has no \(key.stringValue)"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            context.codingPath.last.map { "\($0.stringValue) is of another type" } ?? "it is no JSON object"
        default: "it is no JSON"
        }
    }

    private static var longestDelay: Duration { .seconds(86_400) }
    private static var mostDuplicates: Int { 1000 }
}

/// The members of a line that say how it is sent, and those that nobody knows.
private struct Script: Decodable {
    let delay: Int64
    let duplicates: Int
    let disconnectsAfter: Bool
    let unknown: [String]

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case delay = "delayMs"
        case duplicates
        case disconnectsAfter = "disconnectAfter"
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    static var known: [String] { CodingKeys.allCases.map(\.rawValue) }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        delay = try members.decodeIfPresent(Int64.self, forKey: .delay) ?? 0
        duplicates = try members.decodeIfPresent(Int.self, forKey: .duplicates) ?? 0
        disconnectsAfter = try members.decodeIfPresent(Bool.self, forKey: .disconnectsAfter) ?? false
        let known = Set(Self.known).union(MailboxContent.CodingKeys.allCases.map(\.rawValue))
        unknown = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue).filter { !known.contains($0) }
    }
}
