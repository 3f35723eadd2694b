/// Why an action will never be performed: a service that throws it from `CoreService.perform` is not asked again.
public struct ActionRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// What refused it, and why.
    public let message: String

    /// A refusal, with what refused it and why.
    public init(_ message: String) { self.message = message }

    /// The message.
    public var description: String { message }
}

/// An action that was refused for good, or could not be performed for three days.
public struct RefusedAction: Hashable, Sendable, Identifiable {
    /// The action's identifier.
    public let id: String
    /// The message that it answered.
    public let callID: String
    /// Why.
    public let reason: String

    /// A refused action.
    public init(id: String, callID: String, reason: String) {
        (self.id, self.callID, self.reason) = (id, callID, reason)
    }
}
