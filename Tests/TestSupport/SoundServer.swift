import Foundation

/// The sound server of `Scripts/virtual-cards`, whose sinks are cards without hardware.
public enum SoundServer {
    /// Whether Scripts/virtual-cards runs the tests.
    public static let isThere = ProcessInfo.processInfo.environment["MEDIA_ENGINE_VIRTUAL_CARDS"] != nil

    /// A sink, which can be taken away and brought back.
    public struct Sink {
        let module: String
        let arguments: [String]

        /// Whether it has this name.
        public func isNamed(_ name: String) -> Bool { arguments.contains("sink_name=\(name)") }

        /// Takes it away.
        ///
        /// The server moves the streams of a lost sink to another one; with the last sink the stream is gone.
        ///
        /// - Throws: When pactl cannot be started.
        public func unload() throws { try control("unload-module", module) }

        /// Brings it back.
        ///
        /// - Throws: When pactl cannot be started.
        public func load() throws { try control(["load-module", "module-null-sink"] + arguments) }
    }

    /// The sinks that are there.
    ///
    /// - Returns: Each with what it was made of.
    /// - Throws: When pactl cannot be started.
    public static func sinks() throws -> [Sink] {
        try control("list", "short", "modules").split(separator: "\n").compactMap { line in
            let fields = line.split(separator: "\t").map(String.init)
            guard fields.count >= 3, fields[1] == "module-null-sink" else { return nil }
            return Sink(module: fields[0], arguments: fields[2].split(separator: " ").map(String.init))
        }
    }

    /// Has pactl(1) do something.
    ///
    /// - Parameter arguments: Its arguments.
    /// - Returns: What it prints.
    /// - Throws: When it cannot be started.
    @discardableResult
    public static func control(_ arguments: String...) throws -> String { try control(arguments) }

    @discardableResult
    private static func control(_ arguments: [String]) throws -> String {
        let run = try ProgramRun("/usr/bin/env", ["pactl"] + arguments)
        run.wait()
        return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
