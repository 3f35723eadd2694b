@testable import MediaEngine
import SDP
import Testing

/// The file of a call's playout: from the first packet to the end of the last.
@Suite struct PlayoutRecorderFilterTests {
    @Test(arguments: ["PCMU", "opus", "L16/44100/2"])
    func `what is played is written, to the frame`(codec: String) async throws {
        let file = TemporaryFile()
        defer { withExtendedLifetime(file) {} }
        let path = file.path
        let engine = try CallEngine(.virtual())
        let (left, right) = MemoryLink.pair()
        let description = try engine.registry.codec(named: codec).description
        var sending = CallConfiguration(network: .link(left, local: left.localAddress))
        sending.agreement.codec = AgreedCodec(codec)
        sending.stream.encoder.channelCount = description.format.channelCount
        // An adaptive delay would shorten the silence.
        sending.stream.playoutDelay = .fixed(.milliseconds(60))
        sending.source = .silence
        sending.sink = .none
        var receiving = sending
        receiving.network = .link(right, local: right.localAddress)
        receiving.agreement.direction = .receiveOnly
        receiving.sink = .playout(path)
        sending.agreement.remote = right.localAddress
        let receiver = try await engine.makeCall(receiving)
        try engine.advance(by: .milliseconds(170))
        let sender = try await engine.makeCall(sending)
        try engine.advance(by: .milliseconds(800))
        let sent = sender.report().sent.packets
        try await sender.end()
        try engine.advance(by: .seconds(1))
        #expect(receiver.report().sent.packets == 0)
        try await receiver.end()
        let (format, samples) = try WAVFile.read(path)
        let packet = description.format.frameCount(in: description.defaultPtime)
        #expect(format == description.format)
        #expect(samples.count == sent * packet * format.channelCount)
    }
}
