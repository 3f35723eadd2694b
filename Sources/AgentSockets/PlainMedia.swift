/// The usual form of a piece of sound, read without a decoder of JSON: most messages of an agent are such, 25 a second.
///
///     {"event":"media","streamSid":"MZ…","media":{"payload":"…"}}          blanks anywhere, members in any order
///
/// Whatever has another form is left to the decoder, which says what it is.
struct PlainMedia {
    private let bytes: [UInt8]
    private var place = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Where the Base64 of the sound is, if a message of the kind `event` has that form.
    static func payload(of bytes: [UInt8], event: String) -> Range<Int>? {
        var scanner = PlainMedia(bytes)
        return scanner.message(event)
    }

    private mutating func message(_ event: String) -> Range<Int>? {
        var (isEvent, payload) = (false, Range<Int>?.none)
        guard take("{") else { return nil }
        repeat {
            guard let name = string(), take(":") else { return nil }
            if isSame(name, "event") {
                guard !isEvent, let value = string(), isSame(value, event) else { return nil }
                isEvent = true
            } else if isSame(name, "media") {
                guard payload == nil, take("{"), let name = string(), isSame(name, "payload"), take(":"),
                    let value = string(), take("}")
                else { return nil }
                payload = value
            } else {
                guard Self.streamNames.contains(where: { isSame(name, $0) }), string() != nil else { return nil }
            }
        } while take(",")
        guard take("}"), isEvent else { return nil }
        skipBlanks()
        return place == bytes.count ? payload : nil
    }

    private static let streamNames = ["streamSid", "stream_id", "stream_sid", "streamId"]

    private mutating func skipBlanks() {
        while place < bytes.count, bytes[place] == 0x20 || 0x09...0x0A ~= bytes[place] || bytes[place] == 0x0D {
            place += 1
        }
    }

    /// Goes past a mark, and the blanks before it; false where there is another.
    private mutating func take(_ mark: Unicode.Scalar) -> Bool {
        skipBlanks()
        guard place < bytes.count, bytes[place] == UInt8(ascii: mark) else { return false }
        place += 1
        return true
    }

    /// What is between quotes, if all of it is ASCII and nothing is escaped.
    private mutating func string() -> Range<Int>? {
        guard take("\"") else { return nil }
        let start = place
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            if byte == UInt8(ascii: "\"") { return start..<place - 1 }
            guard 0x20...0x7E ~= byte, byte != UInt8(ascii: "\\") else { return nil }
        }
        return nil
    }

    private func isSame(_ range: Range<Int>, _ text: String) -> Bool { text.utf8.elementsEqual(bytes[range]) }
}
