import Testing

@testable import media_tool

@Suite struct LoadPaceTests {
    @Test(arguments: [(100, 1000, 3), (7, 2, 4), (1, 60_000, 8), (6, 10, 4)])
    func `parts of a load are the whole, and no more at once`(count: Int, concurrent: Int, cores: Int) {
        let whole = LoadPace(count: count, rate: 50, concurrent: concurrent, talk: .zero)
        let parts = whole.split(over: cores)
        #expect(parts.count == min(count, concurrent, cores))
        #expect(parts.map(\.pace.count).reduce(0, +) == count)
        #expect(parts.map(\.pace.concurrent).reduce(0, +) == concurrent)
        #expect(parts.allSatisfy { $0.pace.concurrent > 0 && $0.pace.count > 0 })
        #expect(abs(parts.map(\.pace.rate).reduce(0, +) - 50) < 1e-9)
        var next = 0
        for part in parts {
            #expect(part.formerCount == next)
            next += part.pace.count
        }
    }
}
