import Testing

@testable import MediaEngine

@Suite struct EncoderFilterTests {
    struct Packet: Equatable {
        var timestamp: UInt32
        var isMarked: Bool
        var byteCount: Int
    }

    /// Runs `filter` for one tick of 10 ms and answers the packets.
    private func tick(_ filter: EncoderFilter, samples: [Int16]? = nil) -> [PacketHeader] {
        packets(filter, samples: samples).map(\.0)
    }

    private func packets(_ filter: EncoderFilter, samples: [Int16]? = nil) -> [(PacketHeader, Int)] {
        let frames = filter.format.sampleRate / 100
        let count = frames * filter.format.channelCount
        let audio = UnsafeMutablePointer<Int16>.allocate(capacity: count)
        let batch = UnsafeMutableRawPointer.allocate(byteCount: PacketBatch.byteCount, alignment: 64)
        batch.initializeMemory(as: UInt8.self, repeating: 0, count: PacketBatch.byteCount)
        defer {
            audio.deallocate()
            batch.deallocate()
        }
        for index in 0..<count { (audio + index).initialize(to: samples?[index] ?? Int16(index % 100)) }
        let slots = [
            PortSlot(base: audio, frameCount: Int32(frames), channelCount: Int32(filter.format.channelCount)),
            PortSlot(base: batch, frameCount: 0, channelCount: 0),
        ]
        let events = RingBuffer<GraphEvent>(minimumCapacity: 4)
        slots.withUnsafeBufferPointer { slots in
            guard let base = slots.baseAddress else { return }
            filter.process(
                FilterIO(
                    slots: base,
                    inputCount: 1,
                    outputCount: 1,
                    filter: filter.id,
                    events: events,
                    time: MediaTime(nanoseconds: 5),
                    lateness: .zero,
                    tickDuration: .milliseconds(10)
                )
            )
        }
        let result = PacketBatch(base: batch)
        return (0..<result.count).map { (result.header($0), result.payload($0).count) }
    }

    private func filter(
        _ codec: any AudioCodec,
        payloadType: UInt8 = 96,
        sending: SendingControl = SendingControl(),
        _ change: (inout EncoderConfiguration) -> Void = { _ in }
    ) throws -> EncoderFilter {
        var configuration = EncoderConfiguration()
        configuration.channelCount = codec.description.format.channelCount
        change(&configuration)
        return try EncoderFilter(
            codec: codec,
            configuration: configuration,
            payloadType: payloadType,
            phase: .zero,
            sending: sending,
            continuing: nil
        )
    }

    @Test(arguments: [(10, [1, 1, 1, 1]), (20, [0, 1, 0, 1]), (30, [0, 0, 1, 0]), (40, [0, 0, 0, 1])])
    func `ticks are gathered into packets of the asked length`(ptime: Int, counts: [Int]) throws {
        let filter = try filter(G711Codec(.muLaw)) { $0.ptime = .milliseconds(ptime) }
        let found = counts.map { _ in packets(filter) }
        #expect(found.map(\.count) == counts)
        #expect(found.joined().allSatisfy { $0.1 == ptime * 8 })
        #expect(filter.ptime == .milliseconds(ptime))
    }

    @Test func `timestamps count the clock rate and not the sample rate`() throws {
        let g722 = try filter(G722Codec())
        #expect((0..<6).flatMap { _ in tick(g722) }.map(\.rtpTimestamp) == [0, 160, 320])
        let l16 = try filter(L16Codec(sampleRate: 44100, channelCount: 2))
        #expect((0..<3).flatMap { _ in tick(l16) }.map(\.rtpTimestamp) == [0, 441, 882])
        let opus = try filter(OpusCodec())
        #expect((0..<6).flatMap { _ in tick(opus) }.map(\.rtpTimestamp) == [0, 960, 1920])
    }

    @Test func `a header carries the type, the time and one marker at the start`() throws {
        let filter = try filter(G711Codec(.aLaw), payloadType: 8)
        let headers = (0..<6).flatMap { _ in tick(filter) }
        #expect(headers.map(\.payloadType) == [8, 8, 8])
        #expect(headers.map(\.isMarked) == [true, false, false])
        #expect(headers.allSatisfy { $0.arrival == MediaTime(nanoseconds: 5) })
    }

    @Test func `while sending is off the timestamp goes on, and the next packet is marked`() throws {
        let sending = SendingControl()
        let filter = try filter(G711Codec(.muLaw), sending: sending) { $0.ptime = .milliseconds(10) }
        #expect(tick(filter).count == 1)
        sending.set(.muted, true)
        #expect((0..<5).allSatisfy { _ in tick(filter).isEmpty })
        sending.set(.muted, false)
        let next = try #require(tick(filter).first)
        #expect(next.rtpTimestamp == 6 * 80)
        #expect(next.isMarked)
        #expect(filter.statistics.value.silentPacketCount == 5)
        #expect(filter.statistics.value.packetCount == 2)
        #expect(filter.statistics.value.byteCount == 160)
    }

    @Test func `with DTX silence is left out and speech after it is marked`() throws {
        let filter = try filter(OpusCodec()) { $0.usesDTX = true }
        let speech = CodecTest.speechLike(rate: 48000, seconds: 1)
        func chunk(_ index: Int) -> [Int16] { Array(speech[index * 480..<(index + 1) * 480]) }
        _ = (0..<50).map { tick(filter, samples: chunk($0)) }
        let silence = [Int16](repeating: 0, count: 480)
        _ = (0..<200).map { _ in tick(filter, samples: silence) }
        #expect(filter.statistics.value.silentPacketCount > 50)
        let back = (50..<100).flatMap { tick(filter, samples: chunk($0)) }
        let first = try #require(back.first)
        #expect(first.isMarked && first.rtpTimestamp == 250 * 480)
        #expect(back.filter(\.isMarked).count == 1)
    }

    @Test func `commands reach the encoder`() throws {
        let filter = try filter(OpusCodec()) { $0.bitrate = 64000 }
        let speech = CodecTest.speechLike(rate: 48000, seconds: 1)
        func bytes() -> Int {
            var count = 0
            for start in stride(from: 0, to: speech.count, by: 480) {
                for packet in packets(filter, samples: Array(speech[start..<start + 480])) { count += packet.1 }
            }
            return count
        }
        let before = bytes()
        filter.handle(.bitrate(10000))
        filter.handle(.fec(isOn: true, expectedLossPercent: 1000))
        #expect(bytes() < before / 2)
    }

    /// libopus at 48 kHz: 6.5 ms (RFC 6716, section 2); the 22 samples of G.722's filter banks; G.711 has none.
    @Test func `the codec's own delay is known`() throws {
        #expect(try filter(OpusCodec()).lookahead == .microseconds(6500))
        #expect(try filter(G722Codec()).lookahead == .microseconds(1375))
        #expect(try filter(G711Codec(.muLaw)).lookahead == .zero)
    }

    @Test func `it describes itself`() throws {
        let filter = try filter(OpusCodec()) { $0.ptime = .milliseconds(60) }
        #expect(filter.description.name == "opus encoder")
        #expect(filter.description.inputs == [.audio(AudioFormat(sampleRate: 48000))])
        #expect(filter.description.latency == .milliseconds(60))
    }
}
