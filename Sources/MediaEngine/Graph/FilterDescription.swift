/// What a filter says of itself: for people, for drawings of the graph, and for the checks when it is planned.
public struct FilterDescription: Sendable {
    /// The kind of filter in one word or two: "gain", "Opus encoder".
    package let name: String
    /// One sentence: what it does.
    package let purpose: String
    /// Where it takes samples or packets, in the order of their indices in `FilterIO`.
    package let inputs: [Port]
    /// Where it gives samples or packets, in the order of their indices in `FilterIO`.
    package let outputs: [Port]
    /// Time by which what goes in comes out later, in addition to nothing: 0 for a gain, 20 ms for a delay line.
    package let latency: Duration

    /// Whether output 0 may lie in the same memory as input 0, which has the same format.
    ///
    /// The filter then never reads a sample of input 0 after it has written that sample of output 0, and what it leaves
    /// as it is costs nothing: `AudioBlock.copy` of a block onto itself does nothing.
    package let worksInPlace: Bool

    /// A description with the given parts.
    ///
    /// - Parameters:
    ///   - name: The kind of filter in one word or two: "gain".
    ///   - purpose: One sentence: what it does.
    ///   - inputs: Where it takes samples, in the order of their indices in `FilterIO`.
    ///   - outputs: Where it gives samples, in the order of their indices in `FilterIO`.
    ///   - latency: By how much what goes in comes out later: 0 for a gain.
    public init(
        name: String,
        purpose: String,
        inputs: [Port] = [],
        outputs: [Port] = [],
        latency: Duration = .zero
    ) {
        self.init(
            name: name,
            purpose: purpose,
            inputs: inputs,
            outputs: outputs,
            latency: latency,
            worksInPlace: false
        )
    }

    /// A description with the given parts, of a filter that may work in place.
    package init(
        name: String,
        purpose: String,
        inputs: [Port] = [],
        outputs: [Port] = [],
        latency: Duration = .zero,
        worksInPlace: Bool
    ) {
        self.name = name
        self.purpose = purpose
        self.inputs = inputs
        self.outputs = outputs
        self.latency = latency
        self.worksInPlace = worksInPlace
    }
}
