import Testing

@testable import MediaTransport

@Suite struct PacketIndexTests {
    /// Sequence number, highest index, the index that is meant.
    @Test(
        arguments: [
            (0, 0, 0), (1, 0, 1), (0x8000, 0, 0x8000), (0x8001, 0, nil), (0xFFFF, 0, nil),
            (0xFFFF, 0x1_0000, 0xFFFF), (0xFFFF, 0x1_7FFE, 0x1_FFFF - 0x1_0000), (0, 0xFFFF, 0x1_0000),
            (0x7FFE, 0xFFFF, 0x1_7FFE), (0x7FFF, 0xFFFF, 0x7FFF), (0x8000, 0xFFFF, 0x8000), (5, 0x2_FFF0, 0x3_0005),
        ] as [(UInt16, UInt64, UInt64?)]
    )
    func `a number means the packet that is nearest`(sequence: UInt16, highest: UInt64, index: UInt64?) {
        #expect(PacketIndex.nearest(sequence, to: highest) == index)
    }

    @Test func `the window knows the last 128`() {
        var window = ReplayWindow()
        #expect(window.judge(0) == .new && window.isEmpty)
        window.note(1000)
        #expect(window.judge(1000) == .replayed && window.judge(1001) == .new)
        #expect(window.judge(873) == .new && window.judge(872) == .old)
        window.note(873)
        #expect(window.judge(873) == .replayed && window.highest == 1000)
        window.note(1001)
        #expect(window.judge(873) == .old && window.judge(874) == .new && window.judge(1000) == .replayed)
        window.note(5000)
        #expect(window.judge(4999) == .new && window.judge(1001) == .old && window.judge(5000) == .replayed)
    }

    @Test func `a window that begins at 0 knows what came`() {
        var window = ReplayWindow()
        window.note(0)
        #expect(window.judge(0) == .replayed && window.judge(1) == .new)
    }
}
