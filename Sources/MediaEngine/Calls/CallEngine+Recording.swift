import Glibc
import Synchronization

extension CallEngine {
    static func sleepOneMillisecond() { usleep(1000) }

    func startRecording(_ call: Call, near: String?, far: String?) throws(EngineError) {
        try EngineError.wrapping {
            guard call.state.withLock({ $0.recording == nil && !$0.hasEnded }) else {
                throw EngineError.state("\(call.name) is being recorded or has ended. Stop the recording first.")
            }
            let recording = Call.Recording(
                near: try near.map { try FileRecorderFilter(path: $0, format: call.stream.format) },
                far: try far.map { try FileRecorderFilter(path: $0, format: call.stream.format) }
            )
            try edit { graph in
                if let near = recording.near { try graph.connect(call.stream.sent, to: near) }
                if let far = recording.far { try graph.connect(call.stream.heard, to: far) }
            }
            for filter in recording.filters { timebase.add(filter.sink) }
            call.state.withLock { $0.recording = recording }
        }
    }

    func stopRecording(_ call: Call) throws(EngineError) {
        guard let recording = call.state.withLock({ $0.recording.take() }) else { return }
        try EngineError.wrapping {
            try edit { graph in
                for filter in recording.filters { graph.remove(filter) }
            }
            settle()
            for filter in recording.filters {
                timebase.remove(filter.sink)
                try filter.sink.close()
            }
        }
    }

    /// Edits a copy of the graph, plans it, and lets the plan run; when planning fails nothing has changed.
    func edit(_ body: (inout Graph) throws -> Void) throws {
        try state.withLock { state in
            var graph = state.graph
            try body(&graph)
            runner.install(try GraphPlan(graph))
            state.graph = graph
        }
    }
}
