/// Why something could not be set up: one shape for all parts of the package, told apart by their codes.
///
/// The message says what failed, with values, and then the remedy.
public struct Failure<Code: Hashable & Sendable>: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: Code
    /// What failed, with values, and the remedy.
    public let message: String

    /// A failure with a code and a message.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
