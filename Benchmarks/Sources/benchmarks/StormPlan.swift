@testable import CallBasics

/// What happens to the processes of a storm in one attempt, each at a random moment.
struct StormPlan<Blow> {
    private var blows: [(at: Double, blow: Blow)] = []

    /// Something happens within so many seconds.
    mutating func add(_ blow: Blow, within seconds: Range<Double>, _ generator: inout SeededGenerator) {
        blows.append((Double.random(in: seconds, using: &generator), blow))
    }

    /// It happens to each of so many by chance.
    mutating func add(
        toSomeOf count: Int,
        share: Double,
        within seconds: Range<Double>,
        _ generator: inout SeededGenerator,
        _ blow: (Int) -> Blow
    ) {
        for index in 0..<count where Double.random(in: 0..<1, using: &generator) < share {
            add(blow(index), within: seconds, &generator)
        }
    }

    /// Has all happen, from now on.
    func strike(_ body: (Blow) async throws -> Void) async throws {
        let begin = ContinuousClock.now
        for (moment, blow) in blows.sorted(by: { $0.at < $1.at }) {
            try await Task.sleep(until: begin + .seconds(moment), clock: .continuous)
            try await body(blow)
        }
    }
}
