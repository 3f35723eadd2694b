import Foundation
@testable import MediaEngine
import Testing

/// Digits that other programs made.
///
/// Fixtures/Tones/spandsp-*.wav: `dtmf_tx` of spandsp 0.0.6, all sixteen keys, 50 ms on and 50 ms off but where the
/// name says otherwise. Fixtures/Tones/sox-*.wav: `sox -n synth` of SoX 14.4.2, sine pairs by the table of Q.23.
@Suite struct DTMFIndependentTests {
    @Test(arguments: [
        ("spandsp-50-50", "123A456B789C*0#D"), ("spandsp-40-40", "123A456B789C*0#D"),
        ("spandsp-quiet", "123A456B789C*0#D"), ("spandsp-20-60", ""),
        ("sox-45-45", "1234567890*#ABCD"), ("sox-off-tune", ""),
    ])
    func `digits of other generators are heard as they were meant`(name: String, digits: String) throws {
        let (samples, rate) = try ToneTestSignal.wav(ToneTestSignal.fixtures.appending(path: name + ".wav"))
        let found = try ToneTestSignal.detections(in: samples, rate: rate).filter { $0.phase == .ended }
        #expect(found.map(\.digit.description).joined() == digits)
        let length = name.hasSuffix("40-40") ? 40.0 : name.hasPrefix("sox") ? 45 : 50
        for digit in found { #expect(abs(Double(digit.frameCount) / Double(rate) * 1000 - length) <= 10) }
    }
}
