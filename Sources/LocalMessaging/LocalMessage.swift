/// The name and version under which a message travels: stable, whatever the Swift type is called.
public struct MessageType: Hashable, Sendable, CustomStringConvertible, Codable {
    /// Such as "core.yield"; at most 128 bytes.
    public let name: String
    /// Changes when an older reader would misread the message.
    public let version: UInt16

    /// A type called `name`.
    public init(name: String, version: UInt16 = 1) {
        precondition((1...128).contains(name.utf8.count), "A message type's name has 1 to 128 bytes.")
        self.init(received: name, version: version)
    }

    /// A type that a peer named.
    init(received name: String, version: UInt16) {
        self.name = name
        self.version = version
    }

    /// Name and version, as in "core.yield@1".
    public var description: String { "\(name)@\(version)" }
}

/// A value that one process sends to another of its group.
public protocol LocalMessage: Codable, Sendable {
    /// Name and version on the wire.
    static var messageType: MessageType { get }
}

/// A message that is answered.
public protocol LocalRequest: LocalMessage {
    /// What the answer is.
    associatedtype Reply: Codable & Sendable
}
