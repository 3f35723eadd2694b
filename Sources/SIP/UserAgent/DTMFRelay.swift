internal import CallBasics

/// A key in an INFO request.
///
///     Signal=5
///     Duration=160
///
/// `application/dtmf` holds the key alone.
/// Source: the practice of gateways; RFC 6086 for the request
package struct DTMFRelay: Hashable, Sendable {
    /// "0" to "9", "*", "#", "A" to "D".
    package var key: Character
    /// How long it was pressed, where it is told.
    package var duration: Duration?

    package init(_ key: Character, duration: Duration? = nil) { (self.key, self.duration) = (key, duration) }

    /// The key of an INFO's body; nil when it has none.
    package init?(_ request: SIPMessage) {
        let text = request.bodyBytes.prefix(256).text
        guard (try? request.contentType())?.isNamed("application", "dtmf-relay") == true else {
            guard let key = Self.key(text[...]) else { return nil }
            self.init(key)
            return
        }
        var (key, duration): (Character?, Duration?)
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1).map { $0.filter { !$0.isWhitespace } }
            guard parts.count == 2 else { continue }
            switch parts[0].lowercased() {
            case "signal": key = Self.key(parts[1][...])
            case "duration": duration = Int64(parts[1]).flatMap { 0...60_000 ~= $0 ? .milliseconds($0) : nil }
            default: break
            }
        }
        guard let key else { return nil }
        self.init(key, duration: duration)
    }

    /// The body of an INFO with this key, of type `application/dtmf-relay`.
    package var body: [UInt8] {
        let milliseconds = duration.map {
            $0.components.seconds * 1000 + $0.components.attoseconds / 1_000_000_000_000_000
        }
        return Array("Signal=\(key)\r\nDuration=\(milliseconds ?? 160)\r\n".utf8)
    }

    private static func key(_ text: Substring) -> Character? {
        let word = text.filter { !$0.isWhitespace }
        switch word {
        case "10": return "*"
        case "11": return "#"
        default: break
        }
        guard word.count == 1, let key = word.uppercased().first, "0123456789*#ABCD".contains(key) else { return nil }
        return key
    }
}
