import CallBasics
import MediaEngineTesting
import Testing

@testable import MediaEngine

@Suite struct FileCardTests {
    @Test func `a second opening begins the file anew, and nothing of the first comes after it`() async throws {
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        let rig = try CardRig()
        let route = rig.route(.playback, card)
        try rig.connect([(CountingSource(format: AudioFormat(sampleRate: 48_000)), route.filter)])
        rig.driver.run(ticks: 50)
        await route.release()
        route.use()
        rig.driver.run(ticks: 10)
        await route.release()
        try card.finish()
        let (_, samples) = try WAVFile.read(file.path)
        #expect(!samples.isEmpty && samples.count < 48_000 / 2)
        #expect(try TestFiles.bytes(file.path).count == 44 + 2 * samples.count)
    }
}
