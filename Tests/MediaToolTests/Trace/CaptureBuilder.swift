import MediaEngine

@testable import media_tool

/// Makes the datagrams of a call: RTP, session descriptions, handshakes.
struct CaptureBuilder {
    static let caller = SocketAddress(ipv4: 0x0A00_0001, port: 4000)
    static let callee = SocketAddress(ipv4: 0x0A00_0002, port: 5000)

    /// What was captured so far.
    private(set) var datagrams: [CapturedDatagram] = []
    private var generator = SeededGenerator(seed: 7)

    /// A datagram at `milliseconds`, from caller to callee or back.
    mutating func add(_ bytes: [UInt8], at milliseconds: Int64 = 0, isBack: Bool = false) {
        datagrams.append(
            CapturedDatagram(
                unixNanoseconds: 1_700_000_000_000_000_000 + milliseconds * 1_000_000,
                source: isBack ? Self.callee : Self.caller,
                destination: isBack ? Self.caller : Self.callee,
                payload: bytes
            )
        )
    }

    /// A packet of the caller's, or of the callee's.
    ///
    /// Its payload is noise unless `payload` is given.
    mutating func packet(
        _ sequence: UInt16,
        type: UInt8,
        timestamp: UInt32,
        at milliseconds: Int64,
        ssrc: UInt32 = 1,
        byteCount: Int = 160,
        payload: [UInt8]? = nil,
        isBack: Bool = false
    ) {
        let header = RTPHeader(payloadType: type, sequenceNumber: sequence, timestamp: timestamp, ssrc: ssrc)
        var bytes = [UInt8](repeating: 0, count: RTPHeader.byteCount)
        var target = bytes.mutableSpan
        header.serialize(into: &target)
        add(
            bytes + (payload ?? (0..<byteCount).map { _ in UInt8(truncatingIfNeeded: generator.next()) }),
            at: milliseconds,
            isBack: isBack
        )
    }

    /// Packets of the caller's, or of the callee's, 20 ms apart, numbered from `first`; `pause` later than their numbers say.
    mutating func stream(
        _ count: Int,
        type: UInt8,
        first: UInt16 = 0,
        step: UInt32 = 160,
        ssrc: UInt32 = 1,
        byteCount: Int = 160,
        isBack: Bool = false,
        pause: Int64 = 0,
        isLost: (Int) -> Bool = { _ in false }
    ) {
        for index in 0..<count where !isLost(index) {
            let number = Int(first) + index
            packet(
                UInt16(truncatingIfNeeded: number),
                type: type,
                timestamp: UInt32(number) * step + UInt32(pause / 20) * step,
                at: Int64(number) * 20 + pause,
                ssrc: ssrc,
                byteCount: byteCount,
                isBack: isBack
            )
        }
    }

    /// A SIP message with a description of whoever sends it.
    mutating func describe(_ media: String, isBack: Bool = false, host: String? = nil) {
        let host = host ?? (isBack ? "10.0.0.2" : "10.0.0.1")
        let body = "v=0\r\no=- 1 1 IN IP4 \(host)\r\ns=-\r\nc=IN IP4 \(host)\r\nt=0 0\r\n\(media)"
        let start = isBack ? "SIP/2.0 200 OK" : "INVITE sip:bob@example.com SIP/2.0"
        add(Array("\(start)\r\nContent-Type: application/sdp\r\n\r\n\(body)".utf8), isBack: isBack)
    }

    /// The streams in it.
    var streams: CapturedStreams { CapturedStreams(datagrams) }

    /// Writes a capture to `path`.
    func write(to path: String) throws {
        let origin = datagrams.first?.unixNanoseconds ?? 0
        let writer = try PcapWriter(path: path, unixNanosecondsAtZero: origin)
        for datagram in datagrams {
            try writer.write(
                datagram.payload.span,
                from: datagram.source,
                to: datagram.destination,
                at: MediaTime(nanoseconds: datagram.unixNanoseconds - origin)
            )
        }
        try writer.close()
    }
}
