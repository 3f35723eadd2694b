import Foundation
import MediaEngine
import Testing

/// Limits of ITU-T Q.24 (AT&T's column of annex A where administrations differ), and of the project's own corpus.
struct DTMFDetectorTests {
    private static let hasFetched = ToneTestSignal.fetched != nil

    @Test func `the labelled corpus comes out as its index says`() throws {
        struct Index: Decodable {
            struct Case: Decodable {
                let file: String
                let digits: String
            }
            let cases: [Case]
        }
        let index = try JSONDecoder().decode(
            Index.self,
            from: Data(contentsOf: ToneTestSignal.fixtures.appending(path: "index.json"))
        )
        #expect(index.cases.count == 14)
        for item in index.cases {
            let (samples, rate) = try ToneTestSignal.wav(ToneTestSignal.fixtures.appending(path: item.file))
            #expect(try ToneTestSignal.digits(in: samples, rate: rate) == item.digits, "\(item.file)")
        }
    }

    /// From tino1b2be/DTMF-Decoder, `samples/`: the digits are those of the file names, four bursts in each.
    ///
    /// multimon-ng hears the same, except that it hears the 6 of the complete sequence (under noise as loud) twice.
    @Test(
        .enabled(if: hasFetched, "needs shared/corpora/fetched"),
        arguments: [
            ("a-8kHz", "AAAA"), ("five-8kHz", "5555"), ("hash-8kHz", "####"), ("nine-8kHz", "9999"),
            ("one_distorted", "1"),
            ("complete-sequence-8kHz", "1234567890*#ABCD"),
        ]
    )
    func `recordings of others are heard`(name: String, digits: String) throws {
        let folder = try #require(ToneTestSignal.fetched).appending(path: "dtmf-decoder")
        let (samples, rate) = try ToneTestSignal.wav(folder.appending(path: name + ".wav"))
        #expect(try ToneTestSignal.digits(in: samples, rate: rate) == digits)
    }

    @Test(
        .enabled(if: hasFetched, "needs shared/corpora/fetched"),
        arguments: ["speech/jfk-0-5s-16k.wav", "webrtc-audio/audio_tiny16.wav", "webrtc-audio/audio_tiny8.wav"]
    )
    func `speech holds no digits`(path: String) throws {
        let (samples, rate) = try ToneTestSignal.wav(try #require(ToneTestSignal.fetched).appending(path: path))
        #expect(try ToneTestSignal.digits(in: samples, rate: rate) == "")
    }
}
