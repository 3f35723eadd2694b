import Testing

@Suite struct CoreWitnessLogTests {
    @Test func `cores one after the other are one at once`() throws {
        let log = try #require(CoreWitnessLog("B 7 1 100\nE 7 1 200\nB 8 3 200\nE 8 3 300\n", deaths: [:]))
        #expect(log.mostAtOnce == 1)
        #expect(log.doEpochsRise)
        #expect(log.cores.map(\.end) == [200, 300])
    }

    @Test func `a core that begins before another has ended is seen`() throws {
        let log = try #require(CoreWitnessLog("B 7 1 100\nB 8 2 199\nE 7 1 200\nE 8 2 300\n", deaths: [:]))
        #expect(log.mostAtOnce == 2)
    }

    @Test(arguments: [(150, 1), (160, 2)])
    func `a killed core ran until its death at least`(death: Int64, most: Int) throws {
        let log = try #require(CoreWitnessLog("B 7 1 100\nB 8 2 155\nE 8 2 300\n", deaths: [7: death]))
        #expect(log.mostAtOnce == most)
    }

    @Test func `a core that ended in no way that is known runs for ever`() throws {
        let log = try #require(CoreWitnessLog("B 7 1 100\nB 8 2 155\nE 8 2 300\n", deaths: [:]))
        #expect(log.mostAtOnce == 2)
    }

    @Test func `a death after an orderly end, or before the beginning was noted, moves neither`() throws {
        let log = try #require(CoreWitnessLog("B 7 1 100\nE 7 1 110\nB 8 2 155\n", deaths: [7: 200, 8: 150]))
        #expect(log.cores.map(\.end) == [110, 155])
        #expect(log.mostAtOnce == 1)
    }

    @Test func `an epoch that does not rise is seen`() throws {
        let log = try #require(CoreWitnessLog("B 7 2 100\nE 7 2 110\nB 8 2 155\nE 8 2 160\n", deaths: [:]))
        #expect(!log.doEpochsRise)
    }

    @Test(arguments: ["B 7 1", "B 7 1 100E 7 1 200", "X 7 1 100"])
    func `a torn line is none`(line: String) {
        #expect(CoreWitnessLog(line, deaths: [:]) == nil)
    }
}
