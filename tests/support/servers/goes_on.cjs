// Keeps a server of Node running behind a request that a client broke off: dynalite 4.0 throws its error.
process.on("uncaughtException", (error) => console.error(error));
