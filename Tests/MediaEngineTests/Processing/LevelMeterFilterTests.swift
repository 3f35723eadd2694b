import Testing

@testable import MediaEngine

@Suite struct LevelMeterFilterTests {
    @Test func `energy and peak are those of the samples one by one, for every length`() {
        var generator = SeededGenerator(seed: 1)
        for count in 0...40 {
            let samples = (0..<count).map { _ in Int16(truncatingIfNeeded: Int64(bitPattern: generator.next())) }
            let (energy, largest) = measure(samples.span)
            #expect(energy == samples.reduce(0) { $0 + Int64($1) * Int64($1) })
            #expect(largest == samples.map { min(abs(Int32($0)), 32767) }.max() ?? 0)
        }
    }

    @Test(arguments: [Int16.min, -1, 0, 1, .max])
    func `a block of one value does not overflow`(_ value: Int16) {
        let (energy, largest) = measure(Array(repeating: value, count: 960).span)
        #expect(energy == 960 * Int64(value) * Int64(value))
        #expect(largest == min(abs(Int32(value)), 32767))
    }
}
