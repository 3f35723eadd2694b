/// What waits to be polled, the oldest first; once it is empty the memory of many is given back.
struct OutputQueue<Output: Sendable>: Sendable {
    /// Room for more than these is given back.
    private static var keptCapacity: Int { 32 }

    private var outputs: [Output] = []
    private var polledCount = 0

    var count: Int { outputs.count - polledCount }

    mutating func append(_ output: Output) { outputs.append(output) }

    mutating func poll() -> Output? {
        guard polledCount < outputs.count else { return nil }
        let output = outputs[polledCount]
        polledCount += 1
        if polledCount == outputs.count {
            outputs.removeAll(keepingCapacity: outputs.capacity <= Self.keptCapacity)
            polledCount = 0
        }
        return output
    }
}
