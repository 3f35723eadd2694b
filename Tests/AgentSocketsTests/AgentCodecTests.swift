import MediaEngine
import TestSupport
import Testing

@testable import AgentSockets

@Suite struct AgentCodecTests {
    private static func twilio() -> MediaStreamsCodec {
        var generator = SeededGenerator(seed: 4)
        return MediaStreamsCodec(&generator)
    }

    static func text(_ frame: AgentFrame) -> String? {
        guard case .text(let bytes) = frame else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func frame(_ text: String) -> AgentFrame { .text(Array(text.utf8)) }

    // MARK: Twilio

    @Test func `a call is told by the messages of Media Streams, in their order`() throws {
        var codec = Self.twilio()
        let call = AgentCall(callID: "CA1", parameters: ["from": "a \"b\"\\\n", "to": "ä"])
        let begin = codec.encode(.begin(call)).compactMap(Self.text)
        let stream = try #require(begin.last?.split(separator: "\"").first { $0.hasPrefix("MZ") })
        #expect(stream.utf8.count == 34)
        #expect(begin[0] == #"{"event":"connected","protocol":"Call","version":"1.0.0"}"#)
        #expect(begin[1].hasPrefix(#"{"event":"start","sequenceNumber":"1","streamSid":"\#(stream)","start":{"#))
        #expect(begin[1].contains(#""callSid":"CA1","streamSid":"\#(stream)","tracks":["inbound"]"#))
        #expect(begin[1].contains(#""mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000,"channels":1}"#))
        #expect(begin[1].contains(#""customParameters":{"from":"a \"b\"\\\n","to":"ä"}"#))
        let sound = (0..<2).compactMap { _ in
            codec.encode(.sound([Int16](repeating: 0, count: 160))).first.flatMap(Self.text)
        }
        let payload = String(repeating: "/", count: 213) + "w=="
        #expect(sound[0].contains(#""sequenceNumber":"2""#) && sound[1].contains(#""sequenceNumber":"3""#))
        #expect(
            sound[0].hasSuffix(#""media":{"track":"inbound","chunk":"1","timestamp":"0","payload":"\#(payload)"}}"#),
            "\(sound[0])"
        )
        #expect(sound[1].contains(#""chunk":"2","timestamp":"20""#))
        let rest = [
            AgentNotice.key("5"), .mark("m\"", .played, position: 1250), .mark("n", .dropped, position: 0),
            .transferFailed(to: "sip:a@b", status: 486), .end("hungUp"), .end(nil),
        ]
        .flatMap { codec.encode($0) }.compactMap(Self.text)
        #expect(rest[0].hasSuffix(#""dtmf":{"track":"inbound_track","digit":"5"}}"#))
        #expect(rest[1].hasSuffix(#""mark":{"name":"m\"","played":true,"positionMs":1250}}"#))
        #expect(rest[2].hasSuffix(#""mark":{"name":"n","played":false,"positionMs":0}}"#))
        #expect(rest[3].hasSuffix(#""transferFailed":{"to":"sip:a@b","code":486}}"#))
        #expect(
            rest[4].contains(#""sequenceNumber":"8""#) && rest[4].hasSuffix(#""callSid":"CA1","reason":"hungUp"}}"#)
        )
        #expect(rest[5].hasSuffix(#""callSid":"CA1"}}"#))
    }

    @Test func `what the agent says is sound, marks and clear`() {
        var codec = Self.twilio()
        func decode(_ frame: AgentFrame) -> [AgentRequest] { codec.decode(frame) }
        #expect(
            decode(Self.frame(#"{"event":"media","streamSid":"x","media":{"payload":"//8A"}}"#)) == [
                .sound([0, 0, -32124])
            ]
        )
        #expect(decode(Self.frame(#"{"event":"mark","mark":{"name":"a","more":[1]},"more":{}}"#)) == [.mark("a")])
        #expect(decode(Self.frame(#"{"event":"clear","streamSid":"x"}"#)) == [.clear])
        #expect(decode(Self.frame(#"{"event":"media","media":{"payload":""}}"#)) == [.sound([])])
        #expect(decode(Self.frame(#"{"event":"dtmf","dtmf":{"digit":"1A#"}}"#)) == [.press("1A#")])
        #expect(decode(Self.frame(#"{"event":"hold"}"#)) == [.hold(true)])
        #expect(decode(Self.frame(#"{"event":"resume"}"#)) == [.hold(false)])
        #expect(decode(Self.frame(#"{"event":"transfer","transfer":{"to":"sip:a"}}"#)) == [.transfer(to: "sip:a")])
        #expect(decode(Self.frame(#"{"event":"hangup"}"#)) == [.hangUp])
        #expect(decode(Self.frame(#"{"event":"something new","media":{"payload":"!"}}"#)).isEmpty)
        #expect(codec.malformedCount == 0)
        let wrong = [
            "", "{", "[]", "7", "null", #"{"event":7}"#, #"{"event":"media"}"#, #"{"event":"media","media":{}}"#,
            #"{"event":"media","media":{"payload":"a"}}"#, #"{"event":"media","media":{"payload":"%%%%"}}"#,
            #"{"event":"dtmf"}"#, #"{"event":"dtmf","dtmf":{"digit":""}}"#, #"{"event":"dtmf","dtmf":{"digit":"x"}}"#,
            #"{"event":"dtmf","dtmf":{"digit":"\#(String(repeating: "1", count: 65))"}}"#,
            #"{"event":"transfer"}"#, #"{"event":"transfer","transfer":{"to":""}}"#,
            #"{"event":"transfer","transfer":{"to":"\#(String(repeating: "a", count: 1025))"}}"#,
            #"{"event":"mark"}"#, #"{"event":"mark","mark":{"name":7}}"#,
            #"{"event":"mark","mark":{"name":"\#(String(repeating: "a", count: 1025))"}}"#,
            String(repeating: #"{"event":"#, count: 5000), String(repeating: "[", count: 100_000),
        ]
        for text in wrong { #expect(decode(Self.frame(text)).isEmpty, "\(text.prefix(80))") }
        #expect(decode(.binary([1, 2, 3])).isEmpty && codec.malformedCount == wrong.count + 1)
    }

    @Test(
        arguments: [
            (#"{"event":"media","streamSid":"MZ1","media":{"payload":"//8A"}}"#, "//8A"),
            ("\t{ \"media\" : {\n\"payload\":\"\"} , \"event\": \"media\" }\r\n", ""),
            (#"{"event":"media","event":"media","media":{"payload":"//8A"}}"#, nil),
            (#"{"event":"media","media":{"payload":"//8A"},"media":{"payload":"//8A"}}"#, nil),
            (#"{"event":"mark","media":{"payload":"//8A"}}"#, nil), (#"{"media":{"payload":"//8A"}}"#, nil),
            (#"{"event":"media","mark":"x","media":{"payload":"//8A"}}"#, nil),
            (#"{"event":"media","media":{"payload":"//8A","track":"x"}}"#, nil),
            (#"{"event":"media","media":{"payload":"\/\/8A"}}"#, nil), (#"{"event":"media","streamSid":7}"#, nil),
            (#"{"event":"media","media":{"payload":"//8A"}"#, nil), (#"{"event":"media"}"#, nil), ("{}", nil),
            ("", nil),
            (#"{"event":"media","media":{"payload":"//8A"}} x"#, nil),
            (#"{"event":"media","media":{"payload":"//8A"#, nil),
        ] as [(String, String?)]
    )
    func `the usual form of sound is read at once, and all else is left to the decoder`(text: String, payload: String?)
    {
        let bytes = Array(text.utf8)
        let found = PlainMedia.payload(of: bytes, event: "media").map { String(decoding: bytes[$0], as: UTF8.self) }
        #expect(found == payload)
    }

    @Test func `a request is signed by its whole address`() {
        // By Python's hmac.
        let field = TwilioSignature.field(of: "wss://bot.example.com/twilio?key=1", token: "12345")
        #expect(field == ("X-Twilio-Signature", "1OVqWRNOixyNpwNqVxHfsCvQX94="))
    }

    // MARK: Formats like it

    static func codec(_ format: AgentFormat, _ sampleRate: Int = 8000) -> any AgentCodec {
        var generator = SeededGenerator(seed: 4)
        return format.codec(sampleRate: sampleRate, &generator)
    }

    /// What a call tells by a format, from its begin to its end; what is drawn is named.
    static func story(_ format: AgentFormat, _ sampleRate: Int = 8000) -> [String] {
        var codec = Self.codec(format, sampleRate)
        let call = AgentCall(callID: "CA1", parameters: ["from": "sip:a", "key": "v"])
        let notices: [AgentNotice] = [
            .begin(call), .sound([Int16](repeating: 0, count: 2)), .sound([0, 1]), .key("5"), .cleared,
            .mark("\"m\"", .played, position: 20), .mark("n", .dropped, position: 20), .end("hungUp"),
        ]
        var frames: [AgentFrame] = []
        for notice in notices { frames += codec.encode(notice) }
        return frames.map { frame in
            if case .binary(let bytes) = frame { return "\(bytes)" }
            let text = text(frame) ?? ""
            return text.replacing(/MZ[0-9a-f]{32}/, with: "MZ").replacing(/AC[0-9a-f]{32}/, with: "AC")
        }
    }

    @Test func `Telnyx's members have other names`() {
        #expect(
            Self.story(.telnyx) == [
                #"{"event":"connected","version":"1.0.0"}"#,
                #"{"event":"start","sequence_number":"1","stream_id":"MZ","start":{"user_id":"AC","call_control_id":"CA1","#
                    + #""from":"sip:a","custom_parameters":{"from":"sip:a","key":"v"},"#
                    + #""media_format":{"encoding":"PCMU","sample_rate":8000,"channels":1}}}"#,
                #"{"event":"media","sequence_number":"2","stream_id":"MZ","#
                    + #""media":{"track":"inbound","chunk":"1","timestamp":"0","payload":"//8="}}"#,
                #"{"event":"media","sequence_number":"3","stream_id":"MZ","#
                    + #""media":{"track":"inbound","chunk":"2","timestamp":"0","payload":"//8="}}"#,
                #"{"event":"dtmf","sequence_number":"4","stream_id":"MZ","dtmf":{"digit":"5"}}"#,
                #"{"event":"mark","sequence_number":"5","stream_id":"MZ","#
                    + #""mark":{"name":"\"m\"","played":true,"positionMs":20}}"#,
                #"{"event":"mark","sequence_number":"6","stream_id":"MZ","#
                    + #""mark":{"name":"n","played":false,"positionMs":20}}"#,
                #"{"event":"stop","sequence_number":"7","stream_id":"MZ","#
                    + #""stop":{"user_id":"AC","call_control_id":"CA1","reason":"hungUp"}}"#,
            ]
        )
    }

    @Test func `Plivo has numbers, and its own words for what the agent says`() {
        let story = Self.story(.plivo)
        #expect(
            story[0] == #"{"event":"start","sequenceNumber":1,"streamId":"MZ","start":{"callId":"CA1","streamId":"MZ","#
                + #""accountId":"AC","tracks":["inbound"],"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000}},"#
                + #""extra_headers":"{\"from\":\"sip:a\",\"key\":\"v\"}"}"#
        )
        #expect(story[1].hasSuffix(#""media":{"track":"inbound","chunk":1,"timestamp":"0","payload":"//8="}}"#))
        // What was dropped is not told.
        #expect(story.count == 7 && story[6].contains(#""event":"stop""#))
        #expect(story[4] == #"{"event":"clearedAudio","sequenceNumber":5,"streamId":"MZ"}"#)
        #expect(
            story[5] == #"{"event":"playedStream","sequenceNumber":6,"streamId":"MZ","name":"\"m\"","#
                + #""played":true,"positionMs":20}"#
        )
        var codec = Self.codec(.plivo)
        let media = #""payload":"//8A""#
        for (text, requests) in [
            (
                #"{"event":"playAudio","media":{"contentType":"audio/x-mulaw","sampleRate":8000,\#(media)}}"#,
                [.sound([0, 0, -32124])]
            ),
            (#"{"event":"playAudio","media":{"sampleRate":"8000",\#(media)}}"#, [.sound([0, 0, -32124])]),
            (#"{"event":"playAudio","media":{\#(media)}}"#, [.sound([0, 0, -32124])]),
            (#"{"event":"clearAudio","name":1,"media":[]}"#, [.clear]),
            (#"{"event":"sendDTMF","dtmf":"12#"}"#, [.press("12#")]),
            (#"{"event":"dtmf","dtmf":{"digit":"5"}}"#, [.press("5")]),
            (#"{"event":"checkpoint","streamId":"x","name":"a"}"#, [.mark("a")]),
            (#"{"event":"clearAudio","streamId":"x"}"#, [.clear]), (#"{"event":"media","media":{\#(media)}}"#, []),
        ] as [(String, [AgentRequest])] {
            let got = codec.decode(Self.frame(text))
            #expect(got == requests, "\(text)")
        }
        #expect(codec.malformedCount == 0)
        let linear = codec.decode(
            Self.frame(#"{"event":"playAudio","media":{"contentType":"audio/x-l16","sampleRate":8000,\#(media)}}"#)
        )
        let rate = codec.decode(Self.frame(#"{"event":"playAudio","media":{"sampleRate":"16000",\#(media)}}"#))
        let words = codec.decode(Self.frame(#"{"event":"playAudio","media":{"sampleRate":"8 kHz",\#(media)}}"#))
        // Others do not ask.
        var other = Self.codec(.twilio)
        let spoken = other.decode(Self.frame(#"{"event":"media","media":{"sampleRate":"8 kHz",\#(media)}}"#))
        #expect(spoken == [.sound([0, 0, -32124])] && other.malformedCount == 0)
        let keys = codec.decode(Self.frame(#"{"event":"sendDTMF","dtmf":"x"}"#))
        #expect(linear.isEmpty && rate.isEmpty && words.isEmpty && keys.isEmpty && codec.malformedCount == 4)
    }

    @Test func `Exotel has linear sound at three rates`() {
        let story = Self.story(.exotel, 16_000)
        #expect(story[0] == #"{"event":"connected"}"#)
        #expect(story[1].contains(#""from":"sip:a","custom_parameters":{"#))
        #expect(
            story[1].hasSuffix(#""media_format":{"encoding":"audio/x-raw","sample_rate":"16000","bit_rate":"16"}}}"#)
        )
        #expect(story[3].hasSuffix(#""media":{"chunk":"2","timestamp":"0","payload":"AAABAA=="}}"#))
        var codec = Self.codec(.exotel, 16_000)
        let sound = codec.decode(Self.frame(#"{"event":"media","media":{"payload":"AAABAA=="}}"#))
        #expect(sound == [.sound([0, 1])])
        let odd = codec.decode(Self.frame(#"{"event":"media","media":{"payload":"AAAB"}}"#))
        #expect(odd.isEmpty && codec.malformedCount == 1)
    }

    // MARK: Formats of binary frames

    @Test func `Vonage has sound in binary frames, and notices come back as they were`() {
        #expect(
            Self.story(.vonage, 16_000) == [
                #"{"call_id":"CA1","content-type":"audio/l16;rate=16000","event":"websocket:connected","from":"sip:a","key":"v"}"#,
                "[0, 0, 0, 0]", "[0, 0, 1, 0]", #"{"event":"websocket:dtmf","digit":"5"}"#,
                #"{"event":"websocket:cleared"}"#, #"{"event":"websocket:notify","payload":"m"}"#,
            ]
        )
        var codec = Self.codec(.vonage, 16_000)
        for (frame, requests) in [
            (.binary([1, 0, 2, 0]), [.sound([1, 2])]), (Self.frame(#"{"action":"clear"}"#), [.clear]),
            (
                Self.frame(#"{"action":"notify","payload":{"b":[1,true,null,"x"],"a":{}}}"#),
                [.mark(#"{"a":{},"b":[1,true,null,"x"]}"#)]
            ),
            (Self.frame(#"{"action":"other"}"#), []),
        ] as [(AgentFrame, [AgentRequest])] {
            let got = codec.decode(frame)
            #expect(got == requests)
        }
        #expect(codec.malformedCount == 0)
        let deep = String(repeating: "[", count: 100_000)
        for frame in [
            .binary([1]), Self.frame("{}"), Self.frame(#"{"action":"notify"}"#),
            Self.frame(#"{"action":"notify","payload":\#(deep)"#),
        ]
            as [AgentFrame]
        {
            let got = codec.decode(frame)
            #expect(got.isEmpty)
        }
        #expect(codec.malformedCount == 4)
    }

    @Test func `jambonz has marks that were played or cleared, and keeps an odd byte`() {
        #expect(
            Self.story(.jambonz) == [
                #"{"callSid":"CA1","from":"sip:a","key":"v","sampleRate":8000,"mixType":"mono"}"#, "[0, 0, 0, 0]",
                "[0, 0, 1, 0]", #"{"event":"dtmf","dtmf":"5"}"#,
                #"{"type":"mark","data":{"name":"\"m\"","event":"playout"}}"#,
                #"{"type":"mark","data":{"name":"n","event":"cleared"}}"#,
            ]
        )
        var codec = Self.codec(.jambonz)
        for (frame, requests) in [
            (.binary([1, 0, 2]), [.sound([1])]), (.binary([0]), [.sound([2])]), (.binary([]), [.sound([])]),
            (Self.frame(#"{"type":"mark","data":{"name":"a"}}"#), [.mark("a")]),
            (Self.frame(#"{"type":"killAudio"}"#), [.clear]), (Self.frame(#"{"type":"disconnect"}"#), [.hangUp]),
            (
                Self.frame(
                    #"{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":8000,"audioContent":"AQACAA=="}}"#
                ),
                [.sound([1, 2])]
            ),
            (Self.frame(#"{"type":"else"}"#), []),
        ] as [(AgentFrame, [AgentRequest])] {
            let got = codec.decode(frame)
            #expect(got == requests)
        }
        #expect(codec.malformedCount == 0)
        for text in [
            "", "{}", #"{"type":"mark"}"#, #"{"type":"playAudio"}"#,
            #"{"type":"playAudio","data":{"audioContentType":"wav","audioContent":"AQACAA=="}}"#,
            #"{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":16000,"audioContent":"AQACAA=="}}"#,
            #"{"type":"playAudio","data":{"audioContentType":"raw","audioContent":"AQAC"}}"#,
        ] {
            let got = codec.decode(Self.frame(text))
            #expect(got.isEmpty, "\(text)")
        }
        #expect(codec.malformedCount == 7)
    }

    // MARK: AudioSocket

    @Test(arguments: zip([8000, 16_000, 24_000, 48_000], [0x10, 0x12, 0x13, 0x16] as [UInt8]))
    func `sound goes and comes as 16 bits, little endian`(sampleRate: Int, kind: UInt8) throws {
        var codec = try #require(AudioSocketCodec(sampleRate: sampleRate, identifier: 0x0102 << 112 | 7))
        func decode(_ frame: AgentFrame) -> [AgentRequest] { codec.decode(frame) }
        func encode(_ notice: AgentNotice) -> [AgentFrame] { codec.encode(notice) }
        let begin = encode(.begin(AgentCall(callID: "any")))
        #expect(begin == [.binary([1, 0, 16, 1, 2] + [UInt8](repeating: 0, count: 13) + [7])])
        let sound = encode(.sound([1, -2, 0x1234]))
        #expect(sound == [.binary([kind, 0, 6, 1, 0, 0xFE, 0xFF, 0x34, 0x12])])
        #expect(decode(sound[0]) == [.sound([1, -2, 0x1234])])
        #expect(encode(.key("#")) == [.binary([3, 0, 1, 0x23])] && encode(.end("any")) == [.binary([0, 0, 0])])
        #expect(encode(.mark("a", .played, position: 1)).isEmpty)
        #expect(decode(.binary([0, 0, 0])) == [.hangUp] && decode(.binary([0xFF, 0, 1, 2])).isEmpty)
        #expect(codec.malformedCount == 0)
        let long = encode(.sound([Int16](repeating: 3, count: 40_000)))
        #expect(long.map(\.byteCount) == [3 + 65_534, 3 + 2 * 7233])
        #expect(decode(long[0]).count == 1 && codec.malformedCount == 0)
    }

    @Test func `what breaks the format is counted`() throws {
        var codec = try #require(AudioSocketCodec(sampleRate: 8000, identifier: 1))
        func decode(_ frame: AgentFrame) -> [AgentRequest] { codec.decode(frame) }
        let wrong: [[UInt8]] = [
            [], [0x10], [0x10, 0], [0x10, 0, 0], [0x10, 0, 1, 1], [0x10, 0, 3, 1, 2, 3], [0x10, 0, 2, 1],
            [0x10, 1, 2, 1, 2],
            [0x12, 0, 2, 1, 2], [0x42, 0, 0],
        ]
        for bytes in wrong { #expect(decode(.binary(bytes)).isEmpty, "\(bytes)") }
        #expect(decode(.text([0x10, 0, 2, 1, 2])).isEmpty && codec.malformedCount == wrong.count + 1)
        #expect(AudioSocketCodec(sampleRate: 11_025, identifier: 1) == nil)
    }

    @Test func `whatever comes, decoding goes on`() throws {
        var generator = SeededGenerator(seed: 11)
        var twilio = Self.twilio()
        var socket = try #require(AudioSocketCodec(sampleRate: 8000, identifier: 1))
        let seeds = [
            #"{"event":"media","streamSid":"x","media":{"payload":"//8A"}}"#, #"{"event":"mark","mark":{"name":"a"}}"#,
            #"{"event":"clear"}"#,
        ].map { Array($0.utf8) }
        for _ in 0..<3000 {
            var bytes = seeds.randomElement(using: &generator) ?? []
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
            _ = twilio.decode(.text(bytes))
            let content = bytes.prefix(30)
            _ = socket.decode(.binary([.random(in: 0...255, using: &generator), 0, UInt8(content.count)] + content))
        }
        let last = twilio.decode(.text(seeds[2]))
        #expect(last == [.clear])
    }
}
