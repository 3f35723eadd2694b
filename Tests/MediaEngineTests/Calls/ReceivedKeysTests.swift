import Testing

@testable import MediaEngine

/// The keys that a call keeps.
@Suite struct ReceivedKeysTests {
    /// The key `number` of a sequence that does not repeat within what is kept.
    private func digit(_ number: Int) -> DTMFDigit { DTMFDigit.all[(number ^ number / 16 ^ number / 256) % 16] }

    private func text(_ numbers: Range<Int>) -> String { String(numbers.map { digit($0).character }) }

    @Test func `of too many keys the newest are kept, in their order`() {
        var keys = ReceivedKeys()
        for number in 0..<ReceivedKeys.capacity {
            let noted = keys.note(digit(number).eventCode)
            #expect(noted == digit(number))
        }
        #expect(ReceivedKeys.capacity == 1024 && keys.text == text(0..<1024))
        for number in 1024..<1500 { _ = keys.note(digit(number).eventCode) }
        #expect(keys.text == text(476..<1500))
    }

    @Test func `keys by tones are bounded likewise`() {
        var keys = ReceivedKeys()
        for number in 0..<1500 {
            for isOver in [false, true] {
                let tones = DTMFDetectorFilter.Event(
                    digit: digit(number),
                    start: .zero,
                    nanoseconds: 100_000_000,
                    isOver: isOver
                )
                let told = keys.note(tones)
                #expect(told != nil)
            }
        }
        #expect(keys.text == text(476..<1500))
    }

    @Test func `events that are no keys are not kept`() {
        var keys = ReceivedKeys()
        for code: UInt8 in [16, 32, 100, 255] {
            let noted = keys.note(code)
            #expect(noted == nil)
        }
        #expect(keys.text.isEmpty)
    }
}
