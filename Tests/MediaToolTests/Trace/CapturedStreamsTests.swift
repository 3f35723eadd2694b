import MediaEngine
import SDP
import Testing

@testable import media_tool

/// Streams found in datagrams, and datagrams delivered at their capture times.
@Suite struct CapturedStreamsTests {
    private let caller = SocketAddress(ipv4: 0x0A00_0001, port: 4000)
    private let callee = SocketAddress(ipv4: 0x0A00_0002, port: 5000)

    private func packet(
        _ ssrc: UInt32,
        _ sequence: UInt16,
        type: UInt8 = 0,
        at milliseconds: Int64 = 0,
        byteCount: Int = 160
    ) -> CapturedDatagram {
        let header = RTPHeader(
            payloadType: type,
            sequenceNumber: sequence,
            timestamp: UInt32(sequence) * 160,
            ssrc: ssrc
        )
        var bytes = [UInt8](repeating: 0xFF, count: 12 + byteCount)
        var target = bytes.mutableSpan
        header.serialize(into: &target)
        return datagram(bytes, at: milliseconds)
    }

    private func datagram(_ bytes: [UInt8], at milliseconds: Int64 = 0) -> CapturedDatagram {
        CapturedDatagram(
            unixNanoseconds: milliseconds * 1_000_000,
            source: caller,
            destination: callee,
            payload: bytes
        )
    }

    @Test func `the stream with the most packets comes first, and what is no stream is counted`() {
        var datagrams = (0..<10).map { packet(1, UInt16($0), at: Int64($0) * 20) }
        datagrams += (0..<20).map { packet(2, UInt16($0) &+ 65_530, at: Int64($0) * 20) }
        datagrams += (0..<5).map { packet(3, UInt16($0) &* 9_000) }
        datagrams.append(datagram(Array("hello".utf8)))
        let found = CapturedStreams(datagrams)
        #expect(found.streams.map(\.ssrc) == [2, 1])
        #expect(found.streams.map(\.packetCount) == [20, 10])
        #expect(found.streams.map(\.duration) == [.milliseconds(380), .milliseconds(180)])
        #expect(found.datagramCount == 36 && found.otherCount == 6)
        #expect(datagrams.count { CapturedStreams.contains(found.streams[0], $0) } == 20)
    }

    @Test func `the sound's payload type is told from that of telephone events`() {
        let sound = (0..<10).map { packet(1, UInt16($0), type: 8) }
        let keys = (10..<40).map { packet(1, UInt16($0), type: 101, byteCount: 4) }
        let found = CapturedStreams(sound + keys)
        #expect(found.payloadType(of: found.streams[0]) == 8)
    }

    @Test func `a session description in the capture names the codec`() {
        let body =
            "v=0\r\no=- 1 1 IN IP4 10.0.0.2\r\ns=-\r\nc=IN IP4 10.0.0.2\r\nt=0 0\r\n"
            + "m=audio 5000 RTP/AVP 107 102\r\na=rtpmap:107 opus/48000/2\r\na=rtpmap:102 telephone-event/8000\r\n"
        let message = "SIP/2.0 200 OK\r\nContent-Type: application/sdp\r\n\r\n" + body
        let media = (0..<5).map { packet(1, UInt16($0), type: 107) }
        let found = CapturedStreams([datagram(Array(message.utf8))] + media)
        let opus = found.format(107, of: found.streams[0])
        #expect(opus?.format.encodingName == "opus" && opus?.format.clockRate == 48000 && opus?.isDescribed == true)
        #expect(found.telephoneEventPayloadType(of: found.streams[0]) == 102)
        let plain = CapturedStreams(media)
        #expect(plain.telephoneEventPayloadType(of: plain.streams[0]) == 101)
    }

    @Test func `what is inside of redundant audio is told by its parameters`() {
        let body =
            "v=0\r\no=- 1 1 IN IP4 10.0.0.2\r\ns=-\r\nc=IN IP4 10.0.0.2\r\nt=0 0\r\n"
            + "m=audio 5000 RTP/AVP 96 121\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:121 red/48000/2\r\na=fmtp:121 96/96\r\n"
        let message = "SIP/2.0 200 OK\r\n\r\n" + body
        let media = (0..<5).map { packet(1, UInt16($0), type: 121) }
        let found = CapturedStreams([datagram(Array(message.utf8))] + media)
        #expect(found.payloadType(of: found.streams[0]) == 96)
        #expect(found.redPayloadType(of: found.streams[0]) == 121)
    }

    @Test func `random datagrams never trap and make no stream`() {
        var generator = SeededGenerator(seed: 3)
        let datagrams = (0..<5000).map { index in
            let bytes = (0..<Int(generator.next() % 80)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            return datagram(bytes, at: Int64(index))
        }
        let found = CapturedStreams(datagrams)
        #expect(found.streams.isEmpty && found.otherCount == 5000)
    }

    @Test func `datagrams come at their times, and damaged times stop nothing`() {
        let times: [Int64] = [1000, 1020, 1010, 1060, 9_000_000, 9_000_020]
        let datagrams = times.enumerated().map { packet(1, UInt16($0.offset), at: $0.element) }
        let link = CapturedLink(datagrams, from: MediaTime(nanoseconds: 5_000_000))
        var arrivals: [Int64] = []
        var buffer = [UInt8](repeating: 0, count: 100)
        for tick in 0..<7000 {
            let now = MediaTime(nanoseconds: Int64(tick) * 10_000_000)
            while true {
                var target = buffer.mutableSpan
                guard let received = link.receive(into: &target, at: now) else { break }
                #expect(received.byteCount == 172 && received.source == caller && received.arrival <= now)
                arrivals.append(received.arrival.nanoseconds / 1_000_000)
            }
        }
        #expect(arrivals == [5, 25, 25, 75, 60_075, 60_095])
        #expect(link.isFinished && link.cutPauseCount == 1 && link.backwardCount == 1)
        #expect(link.end == MediaTime(nanoseconds: 60_095_000_000))
        #expect(link.cutEnds == [MediaTime(nanoseconds: 60_075_000_000)])
        #expect(CapturedLink([], from: .zero).isFinished)
    }

    @Test func `a pause of an hour is kept, and a longer one is as long as time stamps say`() {
        func length(_ pause: Int64, step: Duration?) -> Duration {
            let link = CapturedLink([packet(1, 0), packet(1, 1, at: pause)], from: .zero, step: { _, _ in step })
            return link.end - .zero
        }
        #expect(length(3_600_000, step: .zero) == .seconds(3600))
        #expect(length(3_600_001, step: .milliseconds(20)) == .milliseconds(20))
        #expect(length(3_600_001, step: .seconds(3601)) == .seconds(60))
        let pair = [packet(1, 7), packet(1, 12)]
        #expect(CapturedStreams.timestampStep(pair[0], pair[1], clockRate: 8000) == .milliseconds(100))
        #expect(CapturedStreams.timestampStep(pair[0], pair[1], clockRate: 0) == nil)
        #expect(CapturedStreams.timestampStep(pair[0], packet(1, 12, type: 8), clockRate: 8000) == nil)
    }
}
