internal import CallBasics

extension SIPMessage {
    /// Reads the message that a datagram holds.
    ///
    /// What follows the body is left out; without a Content-Length the body goes to the end. A body that is shorter
    /// than told is a `defect`.
    /// Throws: `notAMessage`, or `messageTooLarge` above 64 KiB
    package init(datagram: [UInt8]) throws(SIPError) {
        guard datagram.count <= MessageLimits.byteCount else { throw Self.tooLarge(datagram.count) }
        try self.init(head: datagram)
        guard let length = readContentLength() else { return }
        if length > bodyBytes.count {
            setDefect(
                SIPError(
                    .badRequest,
                    "The body has \(bodyBytes.count) bytes of the \(length) that Content-Length tells."
                )
            )
        }
        cutBody(to: length)
    }

    /// Reads the message at the front of `bytes`; all behind its head is the body.
    ///
    /// Throws: `notAMessage`
    init(head bytes: [UInt8]) throws(SIPError) {
        var storage = bytes
        let (parts, startLine) = try MessageIndex.read(&storage)
        self.init(parts: parts, storage: storage, startLine: startLine)
    }

    /// The body's length as told; nil when it is not told, or not by one number, which is a `defect`.
    mutating func readContentLength() -> Int? {
        guard let value = first(.contentLength) else { return nil }
        guard count(of: .contentLength) == 1, let length = value.decimal(Int.self) else {
            setDefect(SIPError(.badRequest, "Content-Length is \"\(value.excerpt)\" or there twice. Send one number."))
            return nil
        }
        return length
    }

    static func tooLarge(_ count: Int) -> SIPError {
        SIPError(.messageTooLarge, "A message has \(count) bytes. At most \(MessageLimits.byteCount) are taken.")
    }
}
