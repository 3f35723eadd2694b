public import ArgumentParser
public import Logging
import MediaEngine

extension Logger.Level: @retroactive ExpressibleByArgument {}

/// What every command takes.
struct CommonOptions: ParsableArguments {
    @Flag(help: "Print JSON on standard output, and nothing else there.")
    var json = false

    @Option(help: "What is logged on standard error: trace, debug, info, notice, warning, error or critical.")
    var logLevel = Logger.Level.warning

    /// Prints the result, as JSON when asked for, else as text.
    func show(_ json: @autoclosure () -> JSONValue, text: @autoclosure () -> String) {
        StandardOutput.write(self.json ? json().text + "\n" : text())
    }

    /// Sends the logs of the engine to standard error, at the level that was asked for.
    func startLogging() {
        let level = logLevel
        LoggingSystem.bootstrap { ErrorLogHandler(label: $0, logLevel: level) }
    }
}

/// Which cards the roles stand for, on top of the environment and the configuration file.
struct BindingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("What the call card (AU: Audio Unit Receiver) stands for.", valueName: "device"),
        completion: DeviceName.completion
    )
    var au: String?

    @Option(
        help: ArgumentHelp("As --au, for playback only.", valueName: "device"),
        completion: DeviceName.completion
    )
    var auPlayback: String?

    @Option(help: ArgumentHelp("As --au, for capture only.", valueName: "device"), completion: DeviceName.completion)
    var auCapture: String?

    @Option(
        help: ArgumentHelp("What the ringer card (AQ: Audio Queue Device) stands for.", valueName: "device"),
        completion: DeviceName.completion
    )
    var aq: String?

    /// The options, and whether they were given.
    var given: [(String, Bool)] {
        [
            ("--au", au != nil), ("--au-playback", auPlayback != nil), ("--au-capture", auCapture != nil),
            ("--aq", aq != nil),
        ]
    }

    /// Refuses flags for roles beside a card that takes their place.
    ///
    /// - Parameters:
    ///   - device: The card that `--device` names.
    ///   - isRoleTaken: Whether that may be a role, which stands for what its own flags say.
    /// - Throws: `ValidationError` that names both options.
    func check(device: String?, isRoleTaken: Bool = true) throws {
        guard let device else { return }
        let role = isRoleTaken ? DeviceName.role(device) : nil
        guard let flag = given.first(where: { $0.1 && ($0.0 == "--aq" ? CardRole.ringer : .call) != role })?.0 else {
            return
        }
        throw ValidationError("'--device' names the card, in the place of '\(flag)'. Leave out one.")
    }

    /// Refuses flags for cards beside a file that is used in place of one.
    ///
    /// - Parameters:
    ///   - device: The card that `--device` names.
    ///   - file: The option of the file.
    ///   - path: Its path; nil when it was not given.
    /// - Throws: `ValidationError` that names both options.
    func check(device: String? = nil, beside file: String, _ path: String?) throws {
        guard path != nil, let flag = ([("--device", device != nil)] + given).first(where: \.1)?.0 else { return }
        throw ValidationError("'\(flag)' names a card, and '\(file)' takes its place. Leave out one.")
    }

    /// The bindings of flags, environment and file; `device` is the call card, where `--device` names it.
    ///
    /// - Throws: `CardError` that names the flag, the variable or the line that is wrong.
    func bindings(device: String? = nil) throws -> CardBindings {
        var flags: [String: String] = [:]
        flags["au"] = device ?? au
        flags["au.playback"] = auPlayback
        flags["au.capture"] = auCapture
        flags["aq"] = aq
        return try CardBindings(flags: flags, environment: ProcessEnvironment.variables)
    }

    /// How an engine in real time is made that has these bindings.
    func engineConfiguration(device: String? = nil) throws -> CallEngineConfiguration {
        var configuration = CallEngineConfiguration()
        configuration.cardBindings = try bindings(device: device)
        return configuration
    }
}
