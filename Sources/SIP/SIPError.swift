public import CallBasics

/// Why a message, or a part of one, cannot be read or written; the code says which answer a request with it deserves.
public typealias SIPError = Failure<SIPFault>

/// What is wrong with a message.
public enum SIPFault: Hashable, Sendable {
    /// The bytes are not a message at all; nothing can be answered.
    case notAMessage
    /// Something breaks the grammar, or the rules for what a message must hold.
    case badRequest
    /// The Request-URI is longer than is taken.
    case uriTooLong
    /// The Request-URI has a scheme that is not understood.
    case unsupportedScheme
    /// The version of the protocol is not 2.0.
    case unsupportedVersion
    /// The message is longer than is taken.
    case messageTooLarge
    /// A value to be written holds what would end its line or its header.
    case invalidCharacter

    /// The status code of the answer to a request; nil when it gets none, or was never received.
    ///
    /// Source: RFC 3261, section 21.4 and 21.5
    public var statusCode: Int? {
        switch self {
        case .notAMessage, .invalidCharacter: nil
        case .badRequest: 400
        case .uriTooLong: 414
        case .unsupportedScheme: 416
        case .unsupportedVersion: 505
        case .messageTooLarge: 513
        }
    }
}
