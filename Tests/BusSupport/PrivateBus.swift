import Foundation
import Glibc
import Synchronization

/// A `dbus-daemon` that only this test knows.
package final class PrivateBus: Sendable {
    package static let isPossible = FileManager.default.isExecutableFile(atPath: program)

    /// Its name without a file.
    package let abstract: String
    private let root: URL
    private let process = Mutex<Process?>(nil)

    package init() throws {
        root = FileManager.default.temporaryDirectory.appendingPathComponent("bus-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        abstract = "unix:abstract=" + root.path
        try """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
            "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
            <type>session</type>
            <listen>unix:path=\(root.path)/bus</listen>
            <listen>unix:abstract=\(root.path)</listen>
            <auth>EXTERNAL</auth>
            <policy context="default">
                <allow send_destination="*"/>
                <allow receive_type="method_call"/>
                <allow receive_type="method_return"/>
                <allow receive_type="error"/>
                <allow receive_type="signal"/>
                <allow own="*"/>
            </policy>
        </busconfig>
        """.write(to: root.appendingPathComponent("bus.conf"), atomically: true, encoding: .utf8)
        try start()
    }

    /// Starts the daemon, also one that follows another.
    package func start() throws {
        let process = Process()
        let address = Pipe()
        process.executableURL = URL(fileURLWithPath: Self.program)
        process.arguments = ["--config-file=\(root.path)/bus.conf", "--nofork", "--print-address=1"]
        process.standardOutput = address
        process.standardError = FileHandle.nullDevice
        try process.run()
        // It prints its address when it listens.
        _ = address.fileHandleForReading.availableData
        self.process.withLock { $0 = process }
    }

    deinit {
        end()
        try? FileManager.default.removeItem(at: root)
    }

    package var address: String { "unix:path=\(root.path)/bus" }

    package var environment: [String: String] { ["DBUS_SESSION_BUS_ADDRESS": address, "LANG": "de_CH.UTF-8"] }

    /// A folder beside the bus, made when it is not there.
    package func folder(_ name: String) throws -> String {
        let folder = root.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder.path
    }

    package func end() {
        let running = process.withLock { process in
            defer { process = nil }
            return process
        }
        guard let running else { return }
        // The daemon has inherited that the test runner's threads block SIGTERM.
        kill(running.processIdentifier, SIGKILL)
        running.waitUntilExit()
    }

    private static let program = "/usr/bin/dbus-daemon"
}
