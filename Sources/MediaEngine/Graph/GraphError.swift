/// Why a graph could not be edited or planned.
public struct GraphError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of mistake.
    public enum Code: Hashable, Sendable {
        /// The filter is not in the graph, or is in it already.
        case membership
        /// The filter has no such port.
        case noSuchPort
        /// The input has a link already: sum several sources with a mixer.
        case inputTaken
        /// The two ports carry different things.
        case formatMismatch
        /// A required input has no link.
        case unlinkedInput
        /// The links form a circle.
        case cycle
        /// A port's frames do not divide into ticks.
        case indivisibleTick
    }

    /// The kind of mistake.
    public let code: Code
    /// What failed, naming the ports, and the remedy.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
