import Foundation
@testable import MediaEngine
import TestSupport
import Testing

/// Captures as another program sees them.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct PcapRealTimeTests {
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/tcpdump"), "needs tcpdump"))
    func `tcpdump finds the checksums right`() throws {
        let (path, _) = try PcapTests.written { writer in
            for length in [0, 1, 3, 172] {
                let payload = [UInt8](repeating: 0xA7, count: length)
                try writer.write(payload.span, from: PcapTests.one, to: PcapTests.two, at: .zero)
                try writer.write(payload.span, from: PcapTests.three, to: PcapTests.three, at: .zero)
            }
        }
        defer { try? FileManager.default.removeItem(atPath: path) }
        let run = try ProgramRun("/usr/bin/tcpdump", ["-vv", "-n", "-r", path])
        run.wait()
        let output = run.output
        #expect(output.components(separatedBy: "udp sum ok").count == 9, "\(output)")
        #expect(!output.contains("bad"))
    }
}
