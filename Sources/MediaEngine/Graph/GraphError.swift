package import CallBasics

/// Why a graph could not be edited or planned.
package typealias GraphError = Failure<GraphFault>

/// The kinds of `GraphError`.
package enum GraphFault: Hashable, Sendable {
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
