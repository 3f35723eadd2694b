import Foundation
import MediaEngine
import TestSupport
import Testing

@testable import media_tool

/// Traces as files: written row by row, read whole, refused with a reason.
@Suite struct TraceFileTests {
    private func example(rowCount: Int = 5) -> TraceFile {
        var trace = TraceFile(codec: "opus", clockRate: 48000, ptimeMs: 20)
        for index in 0..<rowCount {
            var row = PlayoutTraceRow()
            row.time = MediaTime(nanoseconds: Int64(index) * 20_000_000)
            row.operation = PlayoutOperation.allCases[index]
            row.arrivalDelay = index == 2 ? nil : Float(index) * 1.25
            row.targetDelay = 40.5
            row.playoutDelay = 61.25
            row.arrivedCount = UInt16(index)
            row.missingCount = 1
            row.lateCount = 2
            row.discardedCount = 3
            row.recoveredCount = 4
            row.concealed = 20
            row.stretched = -2.5
            row.level = -127
            row.paused = Float(index) * 12.5
            row.sequenceNumber = index == 2 ? nil : UInt16(truncatingIfNeeded: 65_533 + index)
            row.undecodableCount = UInt16(index)
            trace.rows.append(row)
        }
        trace.droppedRows = 7
        trace.events = [
            TraceEvent(timeMs: 12.5, kind: .xrun, amount: 30), TraceEvent(timeMs: 40, kind: .lost, amount: -1),
        ]
        trace.figures = [TraceFile.Figure(name: "received \"lost\"\n", value: "12 \\ \u{1}é")]
        trace.stream = TraceFile.Stream(
            startUnixMs: 1_763_900_000_123,
            source: "192.0.2.1:5004",
            destination: "[2001:db8::1]:5006",
            ssrc: 0xFFFF_FFFF
        )
        return trace
    }

    private func write(_ trace: TraceFile, startingAt offset: Int64 = 0) throws -> [UInt8] {
        let path = NSTemporaryDirectory() + "trace-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let writer = try TraceFileWriter(path: path, header: trace)
        for var row in trace.rows {
            row.time = MediaTime(nanoseconds: row.time.nanoseconds + offset)
            try writer.append(row)
        }
        for event in trace.events { writer.note(event) }
        try writer.finish(droppedRows: trace.droppedRows, figures: trace.figures, stream: trace.stream)
        try writer.finish(droppedRows: 99)
        return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    @Test func `what is written is read again, with times from the first row on`() throws {
        let trace = example()
        #expect(try TraceFile(parsing: write(trace)) == trace)
        #expect(try TraceFile(parsing: write(trace, startingAt: 987_654_321)) == trace)
        #expect(trace.duration == .milliseconds(100))
    }

    @Test func `another JSON library reads it, and writes what is read here`() throws {
        let trace = example()
        let bytes = try write(trace)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        #expect(object["columns"] as? [String] == TraceFile.columns)
        #expect((object["rows"] as? [[Any]])?.count == 5)
        let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys]
        let again = try JSONSerialization.data(withJSONObject: object, options: options)
        #expect(try TraceFile(parsing: [UInt8](again)) == trace)
    }

    @Test(arguments: [1, 2, 3])
    func `an older trace is read, without what its version does not have`(version: Int) throws {
        var trace = example()
        var object = try #require(try JSONSerialization.jsonObject(with: Data(try write(trace))) as? [String: Any])
        func parsed() throws -> TraceFile {
            try TraceFile(parsing: [UInt8](try JSONSerialization.data(withJSONObject: object)))
        }
        object["version"] = version
        if version < 3 { object["stream"] = nil }
        #expect(throws: TraceFileError.self) { try parsed() }
        let missing = 4 - version
        object["columns"] = Array(TraceFile.columns.dropLast(missing))
        #expect(throws: TraceFileError.self) { try parsed() }
        let rows = try #require(object["rows"] as? [[Any]])
        object["rows"] = rows.map { Array($0.dropLast(missing)) }
        for index in trace.rows.indices {
            if version == 1 { trace.rows[index].paused = 0 }
            if version < 3 { trace.rows[index].sequenceNumber = nil }
            trace.rows[index].undecodableCount = 0
        }
        if version < 3 { trace.stream = TraceFile.Stream() }
        #expect(try parsed() == trace)
    }

    @Test func `a newer version is refused by its number`() throws {
        var object = try #require(try JSONSerialization.jsonObject(with: Data(try write(example()))) as? [String: Any])
        object["version"] = TraceFile.version + 1
        let bytes = [UInt8](try JSONSerialization.data(withJSONObject: object))
        let error = #expect(throws: TraceFileError.self) { try TraceFile(parsing: bytes) }
        #expect(error?.code == .newer && error?.message.contains("version \(TraceFile.version + 1)") == true)
        #expect(error?.message.contains("Use a newer media-tool") == true)
    }

    @Test(arguments: [("startUnixMs", -1.0), ("startUnixMs", 9e15), ("ssrc", 1e10), ("ssrc", -1)])
    func `a stream that cannot be is refused`(key: String, value: Double) throws {
        var object = try #require(try JSONSerialization.jsonObject(with: Data(try write(example()))) as? [String: Any])
        object["stream"] = [key: Int(value)]
        let bytes = [UInt8](try JSONSerialization.data(withJSONObject: object))
        #expect(throws: TraceFileError.self) { try TraceFile(parsing: bytes) }
    }

    @Test func `a trace without rows is a trace`() throws {
        let trace = TraceFile(codec: "PCMU", clockRate: 8000, ptimeMs: 20)
        #expect(try TraceFile(parsing: write(trace)) == trace)
    }

    @Test func `every truncation is an error that says so`() throws {
        let bytes = try write(example(rowCount: 1))
        for count in 0..<(bytes.count - 2) {
            let error = #expect(throws: TraceFileError.self) { try TraceFile(parsing: Array(bytes.prefix(count))) }
            #expect(error?.code == (count < 9 ? .notATrace : error?.code))
            if count > 60 { #expect(error?.code == .truncated, "\(count): \(error?.message ?? "")") }
        }
    }

    @Test func `spoiled bytes never trap`() throws {
        let bytes = try write(example(rowCount: 1))
        var accepted = 0
        forEachSpoiling(of: bytes) { spoiled in
            let copy = (0..<spoiled.count).map { spoiled[$0] }
            do throws(TraceFileError) {
                _ = try TraceFile(parsing: copy)
                accepted += 1
            } catch {
                #expect(!error.message.isEmpty)
            }
        }
        #expect(accepted > 0)
    }

    @Test(arguments: [
        ("", TraceFileFault.notATrace), ("{}", .notATrace), ("[1,2]", .notATrace), ("{\"a\":1}", .notATrace),
        ("{\"format\":\"else\"}", .damaged), ("{\"format\":\"media-engine trace\",\"version\":5}", .newer),
        ("{\"a\":" + String(repeating: "[", count: 100_000), .notATrace),
        ("{\"format\":\"media-engine trace\",\"version\":1,\"rows\":[[0,\"dance\"]]}", .damaged),
        ("{\"format\":\"media-engine trace\",\"version\":1e400}", .damaged),
        ("{\"format\":\"media-engine trace\",\"rows\":[[0,\"play\",null,0,1e300,0,0,0,0,0,0,0,0]]}", .damaged),
        ("{\"format\":\"media-engine trace\",\"rows\":[[0,\"play\",-1e10,0,0,0,0,0,0,0,0,0,0]]}", .damaged),
    ])
    func `what is foreign is refused with a reason`(text: String, code: TraceFileFault) {
        let error = #expect(throws: TraceFileError.self) { try TraceFile(parsing: Array(text.utf8)) }
        #expect(error?.code == code, "\(error?.message ?? "")")
    }

    @Test func `a file that cannot be written is an error with its path`() {
        let error = #expect(throws: TraceFileError.self) {
            try TraceFileWriter(path: "/nosuch/x.json", header: example())
        }
        #expect(error?.code == .system)
        #expect(error?.message.contains("/nosuch/x.json") == true)
    }
}
